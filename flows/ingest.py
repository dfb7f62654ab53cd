"""The flow ``ingest``: what lies under a source becomes rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State

from docmill.failures import ConfigurationError, PermanentError, failure_of
from docmill.ledger import BatchStatus
from flows.batches import batch_spec, work_through
from flows.resources import open_resources
from storage.objects.sources import parse_source
from tasks.discover import discover_documents

Engine = Literal["ocr"]


@flow(name="ingest", flow_run_name="ingest-{document_type}", result_serializer="json", log_prints=False)
async def ingest(
    source: str,
    document_type: str = "generic",
    engine: Engine = "ocr",
    limit: int | None = None,
    force: bool = False,
    max_failure_rate: float | None = None,
    workers: int | None = None,
) -> State[dict[str, Any]]:
    """Read every document under SOURCE that has not been read yet, and record every result and every failure.

    Args:
        source: `s3://bucket/prefix`, a folder or a file.
        document_type: what to extract: receipt, invoice, application_form, generic, or one of your own.
        engine: how pages are read.
        limit: take on at most so many documents.
        force: read again what was read already.
        max_failure_rate: share of failed outcomes (0 to 1) above which the run ends Failed.
        workers: drain tasks of this run; by default from the settings.
    """
    _check(limit, max_failure_rate, workers)
    place = parse_source(source)
    async with open_resources() as world:
        parameters = {
            "limit": limit,
            "force": force,
            "max_failure_rate": max_failure_rate,
            "workers": workers,
        }
        spec = batch_spec(world.settings, str(place), document_type, engine, parameters)
        batch = await world.ledger.start_batch(spec)
        try:
            await discover_documents(open_resources, batch.id, str(place), limit=limit, force=force)
        except PermanentError as error:
            # no such bucket, no right to list it: a batch left running would wait for it for ever
            await world.ledger.finish_batch(batch.id, BatchStatus.FAILED, {"error": asdict(failure_of(error))})
            raise
        return await work_through(world, batch, workers=workers, force=force, max_failure_rate=max_failure_rate)


def _check(limit: int | None, max_failure_rate: float | None, workers: int | None) -> None:
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit is {limit}", remedy="give 1 or more, or leave it out")
    if workers is not None and not 1 <= workers <= 256:
        raise ConfigurationError(f"workers is {workers}", remedy="give 1 to 256, or leave it out")
    if max_failure_rate is not None and not 0 <= max_failure_rate <= 1:
        raise ConfigurationError(f"max_failure_rate is {max_failure_rate}", remedy="give 0 to 1, or leave it out")
