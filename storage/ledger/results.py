"""Results of documents: what there is to merge, and the merged result."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.ledger import FinishedPage, ReadingStatus
from storage.ledger.codec import decode_extraction, finite
from storage.ledger.leases import hold_reading

# NOT IN, so that the index of the queue (made for IN) does not tempt: with many pages waiting it is the wrong one.
_UNMERGED = text("""
SELECT r.id FROM readings r
WHERE r.batch_id = :batch AND r.status = 'opened'
    AND NOT EXISTS (SELECT FROM pages p WHERE p.reading_id = r.id AND p.status NOT IN ('done', 'failed'))
ORDER BY r.position
""")

_FINISHED = text("""
SELECT p.page_no, p.status, e.result, e.raw, f.code
FROM pages p
LEFT JOIN extractions e ON e.id = p.extraction_id
LEFT JOIN failures f ON f.page_id = p.id AND f.resolved_at IS NULL
WHERE p.reading_id = :reading AND p.status IN ('done', 'failed')
ORDER BY p.page_no
""")

_STATUSES = text("""
SELECT count(*) FILTER (WHERE status = 'done') AS done, count(*) FILTER (WHERE status = 'failed') AS failed,
    count(*) FILTER (WHERE status IN ('pending', 'claimed')) AS unfinished
FROM pages WHERE reading_id = :reading
""")

_MERGED = text("""
UPDATE readings SET status = :status, result = :result, confidence = :confidence, merged_at = clock_timestamp()
WHERE id = :reading
""").bindparams(bindparam("result", type_=JSONB))

# Where several pages give a field, the result says which of them stands for the document.
_CHOSEN = text("""
UPDATE fields
SET chosen = (fields.page_no = CAST(best.value ->> 'page' AS integer) AND fields.raw = best.value ->> 'raw')
FROM pages p, readings r,
    jsonb_each(CASE jsonb_typeof(r.result -> 'fields') WHEN 'object' THEN r.result -> 'fields' ELSE '{}' END) best
WHERE r.id = :reading AND p.reading_id = r.id AND fields.extraction_id = p.extraction_id AND fields.row IS NULL
    AND fields.name = best.key AND jsonb_typeof(best.value) = 'object'
""")

# The scan was replaced by a better one under the same name, or read again with a changed prompt: what failed before is
# nobody's concern any more.
_SUPERSEDED = text("""
UPDATE failures SET resolved_at = clock_timestamp()
FROM readings mine
JOIN documents this ON this.id = mine.document_id
JOIN documents older ON older.key = this.key AND older.bucket = this.bucket
    AND older.last_modified <= this.last_modified
JOIN readings others ON others.document_id = older.id AND others.document_type = mine.document_type
    AND others.id <> mine.id
WHERE mine.id = :reading AND failures.reading_id = others.id AND failures.resolved_at IS NULL
    AND others.status IN ('failed', 'partial')
""")


async def unmerged(connection: AsyncConnection, batch_id: UUID) -> list[UUID]:
    """Readings of the batch that only wait to be merged."""
    return list((await connection.execute(_UNMERGED, {"batch": batch_id})).scalars())


async def finished_pages(connection: AsyncConnection, reading_id: UUID) -> list[FinishedPage]:
    """The reading's finished pages in order."""
    rows = await connection.execute(_FINISHED, {"reading": reading_id})
    return [
        FinishedPage(row.page_no, decode_extraction(row.result, row.raw), None)
        if row.status == "done"
        else FinishedPage(row.page_no, None, row.code)
        for row in rows
    ]


async def record_result(
    connection: AsyncConnection, reading_id: UUID, result: dict[str, Any], confidence: float
) -> None:
    """Store the merged result and the final status; nothing where a page has been put back to work meanwhile."""
    reading = await hold_reading(connection, reading_id)
    if reading is None or reading.status == ReadingStatus.PENDING.value:
        return
    pages = (await connection.execute(_STATUSES, {"reading": reading_id})).one()
    if pages.unfinished or not (pages.done or pages.failed):
        return
    status = ReadingStatus.PARTIAL
    if not pages.failed:
        status = ReadingStatus.DONE
    elif not pages.done:
        status = ReadingStatus.FAILED
    await connection.execute(
        _MERGED,
        {
            "reading": reading_id,
            "status": status.value,
            "result": result,
            "confidence": finite(confidence),
        },
    )
    if pages.done:
        await connection.execute(_CHOSEN, {"reading": reading_id})
        await connection.execute(_SUPERSEDED, {"reading": reading_id})
