"""What an analyst asks in psql, over the views and without JSON."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from docmill.failures import EncryptedDocument
from docmill.ledger import BatchStatus


@pytest.fixture
async def batch_id(ledger, samples):
    """Three receipts: one read, one half read, one that does not open."""
    batch_id = await samples.batch(ledger, samples.refs(3))
    locked, *rest = await ledger.claim_documents(batch_id, "w", 9, 60)
    await ledger.record_unopened(locked, samples.failure(EncryptedDocument("the file asks for a password")))
    for number, claim in enumerate(rest):
        await ledger.record_opened(claim, samples.opened(2, f"{number:064}"))
    claims = await ledger.claim_pages(batch_id, "w", 9, 60)
    for claim in claims[:3]:
        total = samples.field("total", Decimal(f"{claim.page_no}0.50"), currency="MYR")
        day = samples.field("date", date(2018, 4, claim.page_no), needs_review=True, notes=("invalid_pattern",))
        await ledger.record_page(claim, samples.attempt(), samples.extraction(total, day))
    await ledger.record_page_failure(claims[3], samples.attempt(), samples.failure(), retry=True)
    (again,) = await ledger.claim_pages(batch_id, "w", 9, 60)
    await ledger.record_page_failure(again, samples.attempt(), samples.failure(), retry=False)
    await samples.merge(ledger, batch_id)
    return batch_id


def test_the_fields_of_one_document(db, batch_id) -> None:
    assert db.rows("""
        SELECT page_no, name, value_text, value_number, value_date, currency, needs_review, notes, document_type
        FROM v_fields WHERE bucket = 'forms' AND key = 'in/00001.pdf' AND page_no = 1 ORDER BY position
    """) == [
        {
            "page_no": 1,
            "name": "total",
            "value_text": "10.50",
            "value_number": Decimal("10.50"),
            "value_date": None,
            "currency": "MYR",
            "needs_review": False,
            "notes": [],
            "document_type": "receipt",
        },
        {
            "page_no": 1,
            "name": "date",
            "value_text": "2018-04-01",
            "value_number": None,
            "value_date": date(2018, 4, 1),
            "currency": None,
            "needs_review": True,
            "notes": ["invalid_pattern"],
            "document_type": "receipt",
        },
    ]
    assert db.value("SELECT sum(value_number) FROM v_fields WHERE name = 'total'") == Decimal("41.50")
    assert db.value("SELECT box FROM v_fields LIMIT 1") == pytest.approx([0.1, 0.2, 0.3, 0.25])


def test_failures_by_code(db, batch_id) -> None:
    assert db.rows("""
        SELECT code, scope, key, page_no, category, remedy <> '' AS has_remedy FROM v_failures ORDER BY code
    """) == [
        {
            "code": "encrypted_document",
            "scope": "document",
            "key": "in/00000.pdf",
            "page_no": None,
            "category": "document",
            "has_remedy": True,
        },
        {
            "code": "unreadable_page",
            "scope": "page",
            "key": "in/00002.pdf",
            "page_no": 2,
            "category": "page",
            "has_remedy": True,
        },
    ]


def test_documents(db, batch_id) -> None:
    rows = db.rows("""
        SELECT key, status, page_count, pages_done, pages_failed, fields, fields_to_review, open_failures, is_current
        FROM v_documents ORDER BY key
    """)
    assert [tuple(row.values()) for row in rows] == [
        ("in/00000.pdf", "failed", None, 0, 0, 0, 0, 1, True),
        ("in/00001.pdf", "done", 2, 2, 0, 4, 2, 0, True),
        ("in/00002.pdf", "partial", 2, 1, 1, 2, 1, 1, True),
    ]


async def test_a_batch_counts_the_same_live_and_closed(ledger, db, batch_id) -> None:
    columns = """
        documents_total, documents_done, documents_partial, documents_failed, documents_unopened, documents_unchanged,
        pages_total, pages_done, pages_failed, fields, fields_to_review, open_failures
    """
    live = db.row(f"SELECT {columns} FROM v_batches")
    assert list(live.values()) == [3, 1, 1, 1, 1, 0, 4, 3, 1, 6, 3, 2]
    await ledger.finish_batch(batch_id, BatchStatus.COMPLETED, {})
    assert db.row(f"SELECT {columns} FROM v_batches") == live
    assert db.value("SELECT status = 'completed' AND seconds >= 0 AND finished_at IS NOT NULL FROM v_batches") is True


def test_attempts_with_their_times(db, batch_id) -> None:
    assert db.rows("SELECT outcome, count(*) AS n FROM v_attempts GROUP BY outcome ORDER BY outcome") == [
        {"outcome": "done", "n": 3},
        {"outcome": "failed", "n": 1},
        {"outcome": "retried", "n": 1},
    ]
    row = db.row("SELECT DISTINCT seconds, render_seconds, ocr_seconds, infer_seconds, model FROM v_attempts")
    assert list(row.values()) == [2.0, 0.1, 0.7, 0.2, "pp-ocr"]


async def test_pages_per_second_of_the_last_batch(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(2))
    await samples.open_all(ledger, batch_id, pages=5)
    started = db.value("SELECT now()") - timedelta(seconds=20)
    claims = await ledger.claim_pages(batch_id, "w", 99, 60)
    for number, claim in enumerate(claims):
        engine = "vision" if number < 2 else "ocr"
        attempt = samples.attempt(engine=engine, started_at=started, ended_at=started + timedelta(seconds=4))
        await ledger.record_page(claim, attempt, samples.extraction())
    ocr, vision = db.rows("SELECT * FROM v_throughput ORDER BY engine")
    assert (ocr["engine"], ocr["pages"], vision["engine"], vision["pages"]) == ("ocr", 8, "vision", 2)
    assert ocr["seconds"] >= 20
    assert ocr["pages_per_second"] == pytest.approx(8 / ocr["seconds"])
    assert ocr["seconds_per_attempt"] == pytest.approx(4)


async def test_only_the_current_reading_of_the_newest_version_shows_its_fields(ledger, samples, db) -> None:
    async def read(ref, value: str, **spec) -> None:
        batch_id = await samples.batch(ledger, [ref], **spec)
        await samples.open_all(ledger, batch_id)
        for claim in await ledger.claim_pages(batch_id, "w", 9, 60):
            await ledger.record_page(claim, samples.attempt(), samples.extraction(samples.field(value=value)))
        await samples.merge(ledger, batch_id)

    def shown() -> set:
        return {row["value_text"] for row in db.rows("SELECT value_text FROM v_fields WHERE key = 'a.pdf'")}

    await read(samples.ref(), "first")
    assert shown() == {"first"}
    await read(samples.ref(), "better prompt", version="v2")
    assert shown() == {"better prompt"}
    await read(samples.ref(), "as invoice", version="v3", document_type="invoice")
    assert shown() == {"better prompt", "as invoice"}
    newer = samples.ref(etag="2", last_modified=samples.now + timedelta(days=1))
    batch_id = await samples.batch(ledger, [newer], version="v2")
    assert shown() == {"better prompt", "as invoice"}  # until the new version has been read
    await samples.read_all(ledger, batch_id)
    assert shown() == {"12.50", "as invoice"}
    assert db.value("SELECT count(*) FROM v_documents WHERE key = 'a.pdf'") == 4
    assert db.value("SELECT count(*) FROM v_documents WHERE key = 'a.pdf' AND is_current") == 2


async def test_a_broken_rerun_does_not_hide_the_good_values(ledger, samples, db) -> None:
    await samples.read_all(ledger, await samples.batch(ledger, [samples.ref()]))
    worse = await samples.batch(ledger, [samples.ref()], version="v2")
    await samples.open_all(ledger, worse)
    for claim in await ledger.claim_pages(worse, "w", 9, 60):
        await ledger.record_page_failure(claim, samples.attempt(), samples.failure(), retry=False)
    await samples.merge(ledger, worse)
    assert db.value("SELECT value_text FROM v_fields") == "12.50"
