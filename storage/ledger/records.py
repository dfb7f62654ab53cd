"""Records of pages: an attempt with its extraction and fields, or with its failure, in one transaction.

The only place where an extraction becomes rows. Whoever records holds the reading's row first, so that exactly one
record sees itself as the document's last.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.extraction import Extraction
from docmill.failures import Disposition, Failure, LeaseLost
from docmill.ledger import Attempt, PageClaim, PageOutcome
from storage.ledger import schema
from storage.ledger.codec import clean_text, encode_extraction, failure_columns, field_columns, finite
from storage.ledger.failing import fail_page, resolve_page
from storage.ledger.leases import hold_page, hold_reading

_OPEN_PAGES = text("""
SELECT EXISTS (SELECT FROM pages WHERE reading_id = :reading AND status NOT IN ('done', 'failed'))
""")

_RECORDED = text("""
SELECT outcome FROM attempts WHERE page_id = :page AND fence = :fence AND holder = :holder
""")

_PAGE_DONE = text("""
UPDATE pages
SET status = 'done', extraction_id = :extraction, attempts = attempts + 1, lease_holder = NULL,
    lease_expires_at = NULL, finished_at = clock_timestamp(), width = nullif(CAST(:width AS integer), 0),
    height = nullif(CAST(:height AS integer), 0), turned = :turned, dpi = :dpi
WHERE id = :page
""")

_PAGE_BACK = text("""
UPDATE pages
SET status = 'pending', attempts = attempts + :spent, lease_holder = NULL, lease_expires_at = NULL
WHERE id = :page
""")

_PAGE_SPENT = text("""
UPDATE pages
SET attempts = attempts + :spent, width = coalesce(nullif(CAST(:width AS integer), 0), width),
    height = coalesce(nullif(CAST(:height AS integer), 0), height), turned = :turned,
    dpi = coalesce(:dpi, dpi)
WHERE id = :page
""")


async def all_finished(connection: AsyncConnection, reading_id: UUID) -> bool:
    """Whether no page of the reading is left to be read. The caller holds the reading's row."""
    return not (await connection.execute(_OPEN_PAGES, {"reading": reading_id})).scalar_one()


async def record_page(
    connection: AsyncConnection, claim: PageClaim, attempt: Attempt, extraction: Extraction
) -> PageOutcome:
    """Success: attempt, extraction, fields, page."""
    batch_id = await _held(connection, claim)
    if isinstance(batch_id, PageOutcome):
        return batch_id
    attempt_id = await _write_attempt(connection, claim, attempt, batch_id, "done", None)
    extraction_id = await _write_extraction(connection, attempt_id, extraction)
    rows = [
        {"extraction_id": extraction_id, **field_columns(field, position=position, page_no=claim.page_no)}
        for position, field in enumerate(extraction.fields)
    ]
    if rows:
        await connection.execute(insert(schema.fields), rows)
    await connection.execute(_PAGE_DONE, {"extraction": extraction_id, **_picture(claim, attempt)})
    await resolve_page(connection, claim.page_id)
    return PageOutcome(document_finished=await all_finished(connection, claim.reading_id))


async def record_page_failure(
    connection: AsyncConnection, claim: PageClaim, attempt: Attempt, failure: Failure, *, retry: bool
) -> PageOutcome:
    """A failed attempt: the page goes back to the queue or is given up.

    Passing trouble (disposition ``retry``) is recorded as well but spends no attempt.
    """
    batch_id = await _held(connection, claim)
    if isinstance(batch_id, PageOutcome):
        return batch_id
    await _write_attempt(connection, claim, attempt, batch_id, "retried" if retry else "failed", failure)
    spent = 0 if failure.disposition is Disposition.RETRY else 1
    if retry:
        await connection.execute(_PAGE_BACK, {"page": claim.page_id, "spent": spent})
        return PageOutcome(document_finished=False, will_retry=True)
    await connection.execute(_PAGE_SPENT, {"spent": spent, **_picture(claim, attempt)})
    await fail_page(connection, claim.page_id, failure)
    return PageOutcome(document_finished=await all_finished(connection, claim.reading_id))


async def _held(connection: AsyncConnection, claim: PageClaim) -> UUID | PageOutcome:
    """Hold the rows and give the page's batch; or the outcome of this very claim where it is recorded already.

    The latter happens where the connection broke after the commit and before its answer.
    """
    await hold_reading(connection, claim.reading_id)
    page = await hold_page(connection, claim)
    if page is not None:
        batch: UUID = page.batch_id
        return batch
    key = {"page": claim.page_id, "fence": claim.fence, "holder": claim.holder}
    outcome = (await connection.execute(_RECORDED, key)).scalar_one_or_none()
    if outcome is None:
        raise LeaseLost(
            f"page {claim.page_no} was claimed by another worker before this one recorded it",
            detail={"page_id": str(claim.page_id), "fence": claim.fence},
        )
    return PageOutcome(
        document_finished=outcome != "retried" and await all_finished(connection, claim.reading_id),
        will_retry=outcome == "retried",
    )


def _picture(claim: PageClaim, attempt: Attempt) -> dict[str, Any]:
    return {
        "page": claim.page_id,
        "width": attempt.width,
        "height": attempt.height,
        "turned": attempt.turned,
        "dpi": attempt.dpi,
    }


async def _write_attempt(
    connection: AsyncConnection,
    claim: PageClaim,
    attempt: Attempt,
    batch_id: UUID,
    outcome: str,
    failure: Failure | None,
) -> UUID:
    details = attempt.details
    columns: dict[str, Any] = {}
    if failure is not None:
        columns = failure_columns(failure)
        del columns["remedy"]
        if body := columns.pop("detail"):
            details = {**details, "failure": body}
    statement = (
        insert(schema.attempts)
        .values(
            page_id=claim.page_id,
            batch_id=batch_id,
            fence=claim.fence,
            number=claim.attempt_no,
            holder=claim.holder,
            engine=clean_text(attempt.engine),
            model=clean_text(attempt.model),
            outcome=outcome,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            seconds=attempt.seconds,
            details=details,
            **columns,
        )
        .returning(schema.attempts.c.id)
    )
    attempt_id: UUID = (await connection.execute(statement)).scalar_one()
    return attempt_id


async def _write_extraction(connection: AsyncConnection, attempt_id: UUID, extraction: Extraction) -> UUID:
    statement = (
        insert(schema.extractions)
        .values(
            attempt_id=attempt_id,
            engine=clean_text(extraction.engine),
            document_type=clean_text(extraction.document_type),
            confidence=finite(extraction.confidence),
            missing=[clean_text(name) for name in extraction.missing],
            needs_review=extraction.needs_review,
            result=encode_extraction(extraction),
            raw=extraction.raw,
        )
        .returning(schema.extractions.c.id)
    )
    extraction_id: UUID = (await connection.execute(statement)).scalar_one()
    return extraction_id
