"""Batches: begun or gone on with, counted, closed."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.failures import ConfigurationError
from docmill.ledger import Batch, BatchCounts, BatchSpec, BatchStatus, Remaining
from storage.ledger import schema
from storage.ledger.codec import clean_text

_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


async def take_turn(connection: AsyncConnection, name: str) -> None:
    """Wait until no other transaction holds ``name``, and hold it until this one ends."""
    await connection.execute(_TURN, {"name": f"docmill:{name}"})


async def start(connection: AsyncConnection, spec: BatchSpec) -> Batch:
    """Go on with the running batch of the same source and extractor_version, or begin one."""
    table = schema.batches
    source = clean_text(spec.source)
    await take_turn(connection, f"batch:{spec.extractor_version}:{source}")
    running = (
        update(table)
        .where(
            table.c.source == source,
            table.c.extractor_version == spec.extractor_version,
            table.c.status == BatchStatus.RUNNING.value,
        )
        # The listing that follows counts the unchanged documents afresh.
        .values(
            flow_run_id=func.coalesce(spec.flow_run_id, table.c.flow_run_id),
            heartbeat_at=func.now(),
            documents_unchanged=0,
        )
        .returning(table)
    )
    row = (await connection.execute(running)).one_or_none()
    if row is not None:
        return _batch(row, joined=True)
    begun = (
        insert(table)
        .values(
            source=source,
            document_type=spec.document_type,
            engine=spec.engine,
            extractor_version=spec.extractor_version,
            parameters=spec.parameters,
            flow_run_id=spec.flow_run_id,
        )
        .returning(table)
    )
    return _batch((await connection.execute(begun)).one(), joined=False)


def _batch(row: Row[Any], *, joined: bool) -> Batch:
    spec = BatchSpec(row.source, row.document_type, row.engine, row.extractor_version, row.parameters, row.flow_run_id)
    return Batch(row.id, spec, BatchStatus(row.status), row.created_at, row.finished_at, joined, row.summary)


async def batch_row(connection: AsyncConnection, batch_id: UUID) -> Row[Any]:
    """The batch's row.

    Raises:
        ConfigurationError: there is none.
    """
    row = (await connection.execute(select(schema.batches).where(schema.batches.c.id == batch_id))).one_or_none()
    if row is None:
        raise ConfigurationError(f"there is no batch {batch_id}", remedy="see: docmill batches")
    return row


_READINGS = text("""
SELECT count(*) AS documents_total,
    count(*) FILTER (WHERE status = 'done') AS documents_done,
    count(*) FILTER (WHERE status = 'partial') AS documents_partial,
    count(*) FILTER (WHERE status = 'failed') AS documents_failed,
    count(*) FILTER (WHERE status = 'failed' AND page_count IS NULL) AS documents_unopened
FROM readings WHERE batch_id = :batch
""")

_PAGES = text("""
SELECT count(*) AS pages_total,
    count(*) FILTER (WHERE status = 'done') AS pages_done,
    count(*) FILTER (WHERE status = 'failed') AS pages_failed
FROM pages WHERE batch_id = :batch
""")

_FIELDS = text("""
SELECT count(*) AS fields, count(*) FILTER (WHERE fields.needs_review) AS fields_to_review
FROM pages JOIN fields ON fields.extraction_id = pages.extraction_id
WHERE pages.batch_id = :batch AND pages.status = 'done'
""")

_FAILURES = text("""
SELECT code, count(*) AS times FROM failures
WHERE batch_id = :batch AND resolved_at IS NULL GROUP BY code ORDER BY times DESC, code
""")


async def counts(connection: AsyncConnection, batch_id: UUID) -> BatchCounts:
    """Count the batch's rows as they are now."""
    batch = await batch_row(connection, batch_id)
    found: dict[str, Any] = {"documents_unchanged": batch.documents_unchanged}
    for query in (_READINGS, _PAGES, _FIELDS):
        found.update((await connection.execute(query, {"batch": batch_id})).one()._mapping)
    failures = await connection.execute(_FAILURES, {"batch": batch_id})
    found["failures_by_code"] = {row.code: row.times for row in failures}
    return BatchCounts(**found)


async def finish(connection: AsyncConnection, batch_id: UUID, status: BatchStatus, summary: dict[str, Any]) -> None:
    """Close the batch with its counts, once."""
    table = schema.batches
    found = await counts(connection, batch_id)
    await connection.execute(
        update(table)
        .where(table.c.id == batch_id, table.c.status == BatchStatus.RUNNING.value)
        .values(
            status=status.value,
            finished_at=func.now(),
            summary=summary,
            counts=dataclasses.asdict(found),
        )
    )


_REMAINING = text("""
SELECT count(*) FILTER (WHERE NOT is_page AND NOT held) AS documents_pending,
    count(*) FILTER (WHERE NOT is_page AND held) AS documents_claimed,
    count(*) FILTER (WHERE is_page AND NOT held) AS pages_pending,
    count(*) FILTER (WHERE is_page AND held) AS pages_claimed,
    min(lease_expires_at) FILTER (WHERE held) AS next_expiry
FROM (
    SELECT false AS is_page, lease_expires_at, coalesce(lease_expires_at > now(), false) AS held
    FROM readings WHERE batch_id = :batch AND status = 'pending'
    UNION ALL
    SELECT true, lease_expires_at, status = 'claimed' AND lease_expires_at > now()
    FROM pages WHERE batch_id = :batch AND status IN ('pending', 'claimed')
) work
""")


async def remaining(connection: AsyncConnection, batch_id: UUID) -> Remaining:
    """What the batch still has to do."""
    row = (await connection.execute(_REMAINING, {"batch": batch_id})).one()
    return Remaining(**row._mapping)
