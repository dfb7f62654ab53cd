"""Report: model servers as a Prefect table artifact."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prefect.artifacts import acreate_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate

from docmill.model_servers import ServerRecord

EVERY_SECONDS = 15.0


def server_row(record: ServerRecord) -> dict[str, Any]:
    """A server as people look at it."""
    metrics = record.metrics
    return {
        "profile": record.profile,
        "state": record.phase or str(record.state),
        "url": record.base_url,
        "host": record.host,
        "gpus": ", ".join(map(str, record.gpus)),
        "restarts": record.restarts,
        "running": metrics.get("requests_running"),
        "waiting": metrics.get("requests_waiting"),
        "tokens/s": metrics.get("generation_tokens_per_second"),
        "kv cache": metrics.get("kv_cache_usage"),
        "leases": record.leases,
    }


class ServerTable:
    """One artifact of a flow run that is kept up to date, at most every 15 seconds.

    Args:
        key: of the artifact: lower case letters, digits and dashes.
        description: in Markdown.
    """

    def __init__(self, key: str, description: str) -> None:
        self._key = key
        self._description = description
        self._artifact_id: UUID | None = None
        self._told: str | None = None
        self._told_at = 0.0

    async def show(self, rows: Sequence[dict[str, Any]], *, now: bool = False) -> None:
        """Show these rows; soon enough, or ``now``."""
        table = json.dumps(list(rows), default=str)
        if table == self._told or (not now and time.monotonic() - self._told_at < EVERY_SECONDS):
            return
        if self._artifact_id is None:
            self._artifact_id = await acreate_table_artifact(
                table=list(rows), key=self._key, description=self._description
            )
        else:
            async with get_client() as client:
                await client.update_artifact(self._artifact_id, ArtifactUpdate(data=table))
        self._told, self._told_at = table, time.monotonic()
