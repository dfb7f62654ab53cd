"""Records of opening: what a document turned out to be, and the page rows that follow from it."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.failures import Failure, LeaseLost
from docmill.ledger import DocumentClaim, OpenedDocument, PageOutcome
from storage.ledger.codec import clean_text
from storage.ledger.failing import fail_document, resolve_document
from storage.ledger.leases import hold_reading
from storage.ledger.records import all_finished

_DOCUMENT = text("""
UPDATE documents SET sha256 = :sha256, media_type = :media_type, page_count = :page_count WHERE id = :document
""")

_READING = text("""
UPDATE readings
SET status = 'opened', lease_holder = NULL, lease_expires_at = NULL, page_count = :page_count, notes = :notes,
    opened_at = clock_timestamp(), crashes = 0
WHERE id = :reading
""")

# A page that was there before (the document is read again) keeps its fence, so that a late record of before is
# refused, and shows its old extraction until the new one is in.
_PAGES = text("""
INSERT INTO pages (
    reading_id, document_id, batch_id, position, page_no, sha256, extractor_version, status, extraction_id,
    width, height, turned, dpi, finished_at
)
SELECT r.id, r.document_id, r.batch_id, r.position, n, :sha256, r.extractor_version,
    CASE WHEN known.extraction_id IS NULL THEN 'pending' ELSE 'done' END, known.extraction_id,
    known.width, known.height, known.turned, known.dpi,
    CASE WHEN known.extraction_id IS NOT NULL THEN clock_timestamp() END
FROM readings r
CROSS JOIN generate_series(1, CAST(:page_count AS integer)) AS n
LEFT JOIN LATERAL (
    SELECT p.extraction_id, p.width, p.height, p.turned, p.dpi
    FROM pages p
    WHERE p.sha256 = :sha256 AND p.extractor_version = r.extractor_version AND p.page_no = n AND p.status = 'done'
        AND NOT :afresh
    ORDER BY p.finished_at DESC LIMIT 1
) known ON true
WHERE r.id = :reading
ORDER BY n
ON CONFLICT (reading_id, page_no) DO UPDATE
SET batch_id = excluded.batch_id, position = excluded.position, sha256 = excluded.sha256, status = excluded.status,
    extraction_id = coalesce(excluded.extraction_id, pages.extraction_id), lease_holder = NULL,
    lease_expires_at = NULL, attempts = 0, crashes = 0, server_crashes = 0, finished_at = excluded.finished_at
""")

_SURPLUS = text("DELETE FROM pages WHERE reading_id = :reading AND page_no > :page_count")

_RESOLVED = text("""
UPDATE failures SET resolved_at = clock_timestamp()
FROM pages
WHERE pages.id = failures.page_id AND pages.reading_id = :reading AND pages.status = 'done' AND resolved_at IS NULL
""")


async def record_opened(
    connection: AsyncConnection, claim: DocumentClaim, opened: OpenedDocument, *, force: bool
) -> PageOutcome:
    """The document's facts and its pages; those that were read already from the same bytes are done at once."""
    forced = await _held(connection, claim)
    if forced is not None:
        facts = {
            "reading": claim.reading_id,
            "document": claim.document_id,
            "sha256": opened.sha256,
            "media_type": opened.media_type,
            "page_count": opened.page_count,
            "notes": [clean_text(note) for note in opened.notes],
            "afresh": force or forced,
        }
        await connection.execute(_DOCUMENT, facts)
        await connection.execute(_READING, facts)
        await connection.execute(_PAGES, facts)
        await connection.execute(_SURPLUS, facts)
        await connection.execute(_RESOLVED, facts)
        await resolve_document(connection, claim.reading_id)
    return PageOutcome(document_finished=await all_finished(connection, claim.reading_id))


async def record_unopened(connection: AsyncConnection, claim: DocumentClaim, failure: Failure) -> None:
    """The document's failure."""
    if await _held(connection, claim) is not None:
        await fail_document(connection, claim.reading_id, failure)


async def _held(connection: AsyncConnection, claim: DocumentClaim) -> bool | None:
    """Hold the reading's row: whether it is to be read afresh; None where this very claim is recorded already.

    Raises:
        LeaseLost: another worker claimed it meanwhile, or it was put back to work.
    """
    reading = await hold_reading(connection, claim.reading_id)
    if reading is not None and reading.fence == claim.fence:
        if reading.status != "pending":
            return None
        if reading.lease_holder == claim.holder:
            return bool(reading.forced)
    raise LeaseLost(
        "the document was claimed by another worker before this one recorded it",
        detail={"reading_id": str(claim.reading_id), "fence": claim.fence},
    )
