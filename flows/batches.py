"""What every flow over a batch does: drain it with a task per worker slot, fold the outcomes, say how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import asdict
from typing import Any
from uuid import UUID

from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from docmill.document_types import load_document_type
from docmill.ledger import Batch, BatchCounts, BatchSpec, BatchStatus
from docmill.settings import Settings
from docmill.versions import extractor_version
from flows.drains import run_drains
from flows.resources import World, make_extractor, open_resources
from tasks.orders import DrainOrder
from tasks.patience import patiently
from tasks.report_progress import follow_progress, publish_summary

logger = logging.getLogger(__name__)


def batch_spec(
    settings: Settings, source: str, document_type: str, engine: str, parameters: dict[str, Any]
) -> BatchSpec:
    """The batch that these parameters ask for.

    Raises:
        ConfigurationError: no such document type or engine.
    """
    kind = load_document_type(document_type, settings.pipeline.document_types)
    extractor = make_extractor(engine, settings)
    run_id = flow_run.id
    return BatchSpec(
        source=source,
        document_type=kind.name,
        engine=engine,
        extractor_version=extractor_version(kind, engine, extractor.fingerprint),
        parameters={**parameters, "document_type": document_type},
        flow_run_id=UUID(str(run_id)) if run_id else None,
    )


async def work_through(
    world: World, batch: Batch, *, workers: int | None, force: bool, max_failure_rate: float | None
) -> State[dict[str, Any]]:
    """Drain the batch and close it.

    Args:
        world: open resources.
        batch: its work is in the ledger already.
        workers: drain tasks; the setting when left out.
        force: read again what was read from the same bytes.
        max_failure_rate: share of failed outcomes above which the run ends Failed; the setting when left out.

    Returns:
        Completed or Failed, with the summary as its data.

    Raises:
        DocmillError: the drains could not finish (Postgres away, a setting wrong); the batch can go on later.
    """
    pipeline = world.settings.pipeline
    # as it was given: a document type of one's own may be a file
    document_type = batch.spec.parameters.get("document_type", batch.spec.document_type)
    order = DrainOrder(batch.id, document_type, batch.spec.engine, 0, force)
    progress = asyncio.create_task(follow_progress(lambda: world.ledger.counts(batch.id)))
    try:
        await run_drains(world, open_resources, order, workers or pipeline.workers)
    finally:
        progress.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await progress
    counts = await patiently(lambda: world.ledger.counts(batch.id), pipeline.transient_patience_seconds)
    allowed = pipeline.max_failure_rate if max_failure_rate is None else max_failure_rate
    too_many = counts.failure_rate > allowed
    status = BatchStatus.FAILED if too_many else BatchStatus.COMPLETED
    summary = summarised(batch, counts, status)
    await patiently(lambda: world.ledger.finish_batch(batch.id, status, summary), pipeline.transient_patience_seconds)
    await publish_summary(batch, counts)
    told = _told(counts)
    if too_many:
        return Failed(
            message=f"{told}; failure rate {counts.failure_rate:.0%} is above {allowed:.0%}",
            data=summary,
        )
    return Completed(message=told, data=summary)


def summarised(batch: Batch, counts: BatchCounts, status: BatchStatus) -> dict[str, Any]:
    """The summary as it is stored and handed on."""
    return {
        "batch_id": str(batch.id),
        "status": status.value,
        "failure_rate": round(counts.failure_rate, 4),
        **asdict(counts),
    }


def _told(counts: BatchCounts) -> str:
    """In words; what there is none of is left out."""
    if not counts.documents_total and not counts.documents_unchanged:
        return "nothing there: no documents under the source"
    if not counts.documents_total:
        return f"nothing new: {_many(counts.documents_unchanged, 'document')} unchanged"
    read = counts.documents_done + counts.documents_partial
    parts = [f"{read} of {_many(counts.documents_total, 'document')} read ({_many(counts.pages_done, 'page')})"]
    if counts.pages_failed:
        parts.append(f"{_many(counts.pages_failed, 'page')} failed")
    if counts.documents_unopened:
        parts.append(f"{_many(counts.documents_unopened, 'document')} could not be opened")
    if counts.documents_unchanged:
        parts.append(f"{counts.documents_unchanged} unchanged")
    return ", ".join(parts)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
