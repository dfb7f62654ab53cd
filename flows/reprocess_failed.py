"""The flow ``reprocess-failed``: what failed in a batch gets another chance."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.batches import batch_spec, work_through
from flows.resources import open_resources
from tasks.reopen import reopen_failures


@flow(name="reprocess-failed", flow_run_name="reprocess-{batch}", result_serializer="json", log_prints=False)
async def reprocess_failed(
    batch: str = "last",
    codes: list[str] | None = None,
    document: str | None = None,
    limit: int | None = None,
    max_failure_rate: float | None = None,
    workers: int | None = None,
) -> State[dict[str, Any]]:
    """Try the failed pages and unopened documents of a batch again.

    Args:
        batch: its id, the beginning of its id, or `last`.
        codes: only failures with one of these error codes.
        document: only the document with this key.
        limit: at most so many.
        max_failure_rate: share of failed outcomes (0 to 1) above which the run ends Failed.
        workers: drain tasks of this run; by default from the settings.
    """
    async with open_resources() as world:
        source = await world.queries.batch(batch)
        parameters = {"reprocess": str(source["batch_id"]), "codes": codes or [], "document": document, "limit": limit}
        given = await world.queries.batch_parameters(source["batch_id"])
        document_type = str(given.get("document_type") or source["document_type"])
        spec = batch_spec(world.settings, source["source"], document_type, source["engine"], parameters)
        again = await world.ledger.start_batch(spec)
        await reopen_failures(
            world, again, source["batch_id"], source["extractor_version"],
            codes=codes or [], document=document, limit=limit,
        )  # fmt: skip
        return await work_through(world, again, workers=workers, force=False, max_failure_rate=max_failure_rate)
