"""The flow ``serving-health``: rows of model servers against reality."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_table_artifact
from prefect.client.schemas.objects import State
from prefect.events import emit_event
from prefect.states import Completed

from docmill.model_servers import ServerRecord
from docmill.settings import load_settings
from flows.endpoints import database_url
from flows.reconciling import event_id, reconcile, untold_failures
from storage.ledger.model_servers import PostgresServerRegistry

FAILED_EVENT = "docmill.server.failed"


@flow(name="serving-health", result_serializer="json", log_prints=False)
async def serving_health() -> State[dict[str, Any]]:
    """Bring the rows of model servers in line with what runs, and say what was found.

    Rows whose supervisor is gone become failed, processes that nobody looks after are ended, ready servers are asked
    whether they are well. Each failure is told once as the event `docmill.server.failed`. The run ends as `Mended`
    where something was not as its row said, as `Troubled` where a server that says it is ready does not answer.
    """
    settings = load_settings()
    async with PostgresServerRegistry.connect(database_url(settings)) as registry:
        findings = await reconcile(registry)
        for record in await untold_failures(settings, registry):
            _tell(record)
    await acreate_table_artifact(
        table=[asdict(each) for each in findings], key="serving-health", description="model servers: `docmill servers`"
    )
    counts = {state: sum(each.state == state for each in findings) for state in ("ok", "mended", "trouble")}
    name = "Troubled" if counts["trouble"] else "Mended" if counts["mended"] else "Completed"
    told = ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no model servers"
    return Completed(name=name, message=told, data={**counts, "findings": [asdict(each) for each in findings]})


def _tell(record: ServerRecord) -> None:
    emit_event(
        FAILED_EVENT,
        resource={
            "prefect.resource.id": f"docmill.server.{record.id}",
            "prefect.resource.name": f"{record.profile} on {record.host}",
        },
        occurred=record.ended_at,
        payload={
            "profile": record.profile,
            "host": record.host,
            "code": record.error_code,
            "message": (record.message or "").partition("\n")[0],
            "restarts": record.restarts,
        },
        id=event_id(record.id),
    )
