"""Report: the batch's progress and summary as Prefect artifacts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from prefect.artifacts import acreate_progress_artifact, acreate_table_artifact, aupdate_progress_artifact

from docmill.failures import TransientError
from docmill.ledger import Batch, BatchCounts

EVERY_SECONDS = 2.0


async def follow_progress(counts: Callable[[], Awaitable[BatchCounts]]) -> None:
    """Keep a progress artifact up to date until cancelled. Pages that are not known yet cannot be counted."""
    artifact_id: UUID | None = None
    told = -1.0
    while True:
        try:
            now = await counts()
        except TransientError:
            await asyncio.sleep(EVERY_SECONDS)
            continue
        share = 100.0 * now.pages_finished / now.pages_total if now.pages_total else 0.0
        if artifact_id is None:
            artifact_id = await acreate_progress_artifact(progress=share, description="pages finished")
        elif share != told:
            await aupdate_progress_artifact(artifact_id, progress=share)
        told = share
        await asyncio.sleep(EVERY_SECONDS)


async def publish_summary(batch: Batch, counts: BatchCounts) -> None:
    """The batch's summary as a table artifact: counts, and open failures by code."""
    rows: list[dict[str, object]] = [
        {"what": "documents read", "count": counts.documents_done},
        {"what": "documents read in part", "count": counts.documents_partial},
        {"what": "documents failed", "count": counts.documents_failed},
        {"what": "documents unchanged", "count": counts.documents_unchanged},
        {"what": "pages read", "count": counts.pages_done},
        {"what": "pages failed", "count": counts.pages_failed},
        {"what": "fields", "count": counts.fields},
        {"what": "fields to review", "count": counts.fields_to_review},
        *({"what": f"failures: {code}", "count": count} for code, count in sorted(counts.failures_by_code.items())),
    ]
    await acreate_table_artifact(
        table=rows,
        key=f"batch-{batch.id}",
        description=f"{batch.spec.source} as {batch.spec.document_type}: docmill show {str(batch.id)[:8]}",
    )
