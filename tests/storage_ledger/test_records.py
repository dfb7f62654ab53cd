"""Records: all of it or nothing, once, and every value in its column."""

import asyncio
import dataclasses
from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy.exc import OperationalError

from docmill.failures import DatabaseUnavailable, InvalidOutput, LeaseLost, ServerOverloaded, UnexpectedError
from docmill.ledger import PageOutcome
from storage.ledger import records
from storage.ledger.postgres import PostgresLedger

TABLES = ("pages", "attempts", "extractions", "fields", "failures")


def everything(db) -> dict[str, list]:
    return {table: db.rows(f"SELECT * FROM {table} ORDER BY id") for table in TABLES}


async def test_a_page_and_its_values(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    fields = (
        samples.field("total", Decimal("1234.50"), currency="MYR"),
        samples.field("date", date(2018, 4, 3), raw="03/04/2018"),
        samples.field("paid", True, box=None, notes=("unsupported",), needs_review=True),
        samples.field("items.name", "Tea", row=0),
        samples.field("due", None, raw="soon", notes=("not_a_date",)),
    )
    extraction = samples.extraction(*fields, missing=("company",), raw={"answer": [1, "two"]})
    outcome = await ledger.record_page(page, samples.attempt(turned=90), extraction)
    assert outcome == PageOutcome(document_finished=True)
    (finished,) = await ledger.finished_pages(page.reading_id)
    assert (finished.page_no, finished.extraction, finished.failure_code) == (1, extraction, None)
    total, day, paid, tea, due = db.rows("SELECT * FROM fields ORDER BY position")
    assert (total["value_number"], total["value_text"], total["currency"]) == (Decimal("1234.50"), "1234.50", "MYR")
    assert (day["value_date"], day["raw"], day["page_no"]) == (date(2018, 4, 3), "03/04/2018", 1)
    assert (paid["value_boolean"], paid["x0"], paid["notes"], paid["needs_review"]) == (
        True,
        None,
        ["unsupported"],
        True,
    )
    assert (tea["value_text"], tea["row"]) == ("Tea", 0)
    assert (due["value_text"], due["raw"]) == (None, "soon")
    assert [total[corner] for corner in ("x0", "y0", "x1", "y1")] == pytest.approx([0.1, 0.2, 0.3, 0.25])
    row = db.row("SELECT status, attempts, width, height, turned, dpi, lease_holder FROM pages")
    assert row == {
        "status": "done",
        "attempts": 1,
        "width": 1240,
        "height": 1754,
        "turned": 90,
        "dpi": 150.0,
        "lease_holder": None,
    }


async def test_a_failed_attempt_goes_back_or_is_given_up(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    batch_id = db.value("SELECT id FROM batches")
    invalid = samples.failure(InvalidOutput("not what the schema asks for", detail={"body": "x"}))
    outcome = await ledger.record_page_failure(page, samples.attempt(details={"tokens": 5}), invalid, retry=True)
    assert outcome == PageOutcome(document_finished=False, will_retry=True)
    assert db.value("SELECT count(*) FROM failures") == 0
    (page,) = await ledger.claim_pages(batch_id, "w", 1, 60)
    assert page.attempt_no == 2
    outcome = await ledger.record_page_failure(page, samples.attempt(), invalid, retry=False)
    assert outcome == PageOutcome(document_finished=True)
    assert db.rows("SELECT number, outcome, code FROM v_attempts ORDER BY number") == [
        {"number": 1, "outcome": "retried", "code": "invalid_output"},
        {"number": 2, "outcome": "failed", "code": "invalid_output"},
    ]
    details = db.value("SELECT details FROM attempts WHERE number = 1")
    assert details == {"tokens": 5, "failure": {"body": "x"}}
    failure = db.row("SELECT code, category, disposition, message, page_no, detail FROM failures")
    assert (failure["code"], failure["category"], failure["disposition"]) == ("invalid_output", "engine", "resample")
    assert failure["detail"] == {"body": "x"}
    (finished,) = await ledger.finished_pages(page.reading_id)
    assert (finished.extraction, finished.failure_code) == (None, "invalid_output")


async def test_passing_trouble_spends_no_attempt(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    busy = samples.failure(ServerOverloaded("come back later"))
    await ledger.record_page_failure(page, samples.attempt(), busy, retry=True)
    (again,) = await ledger.claim_pages(db.value("SELECT id FROM batches"), "w", 1, 60)
    assert again.attempt_no == 1


@pytest.mark.parametrize(
    "step", ["_write_attempt", "_write_extraction", "field_columns", "resolve_page", "all_finished"]
)
async def test_an_error_in_the_middle_leaves_nothing(ledger, samples, db, monkeypatch, step) -> None:
    page = await samples.page(ledger)
    before = everything(db)
    real = getattr(records, step)

    def then_break(*arguments: object, **named: object) -> object:
        if asyncio.iscoroutinefunction(real):

            async def late() -> None:
                await real(*arguments, **named)
                raise OperationalError("x", {}, Exception("the cable was pulled"), connection_invalidated=True)

            return late()
        raise OperationalError("x", {}, Exception("the cable was pulled"), connection_invalidated=True)

    with monkeypatch.context() as patch:
        patch.setattr(records, step, then_break)
        with pytest.raises(DatabaseUnavailable):
            await ledger.record_page(page, samples.attempt(), samples.extraction())
    assert everything(db) == before
    assert (await ledger.record_page(page, samples.attempt(), samples.extraction())).document_finished


async def test_a_value_that_postgres_refuses_leaves_nothing(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    before = everything(db)
    beyond = samples.field(row=2**40)  # no integer column holds it
    with pytest.raises(UnexpectedError) as caught:
        await ledger.record_page(page, samples.attempt(), samples.extraction(samples.field(), beyond))
    assert "12.50" not in str(caught.value) + repr(caught.value.detail)  # messages quote no page
    assert everything(db) == before


async def test_the_same_record_again_is_recognised(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    first = await ledger.record_page(page, samples.attempt(), samples.extraction())
    stored = everything(db)
    assert await ledger.record_page(page, samples.attempt(), samples.extraction()) == first
    assert everything(db) == stored
    other = await samples.page(ledger, "b.pdf")
    gone_back = await ledger.record_page_failure(other, samples.attempt(), samples.failure(), retry=True)
    assert await ledger.record_page_failure(other, samples.attempt(), samples.failure(), retry=True) == gone_back


async def test_the_same_opening_again_is_recognised(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(2))
    good, bad = await ledger.claim_documents(batch_id, "w", 9, 60)
    assert not (await ledger.record_opened(good, samples.opened(2))).document_finished
    assert not (await ledger.record_opened(good, samples.opened(2))).document_finished
    await ledger.record_unopened(bad, samples.failure())
    await ledger.record_unopened(bad, samples.failure())
    assert db.value("SELECT count(*) FROM pages") == 2
    assert db.value("SELECT count(*) FROM failures") == 1


async def test_the_last_page_is_seen_once_by_records_at_the_same_moment(url, ledger, samples) -> None:
    batch_id = await samples.batch(ledger, samples.refs(1))
    await samples.open_all(ledger, batch_id, pages=12)
    claims = await ledger.claim_pages(batch_id, "w", 99, 60)
    async with PostgresLedger.connect(url, pool_size=12) as many:
        outcomes = await asyncio.gather(
            *(many.record_page(claim, samples.attempt(), samples.extraction()) for claim in claims)
        )
    assert [outcome.document_finished for outcome in outcomes].count(True) == 1


async def test_text_that_postgres_refuses_is_cleaned(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    field = samples.field("na\x00me", "va\x00lue", raw="r\x00\ud800", notes=("n\x00",), currency="E\x00")
    extraction = samples.extraction(field, text="a\x00b", raw={"k\x00": ["\x00"], "score": float("nan")})
    await ledger.record_page(page, samples.attempt(model="m\x00", details={"d": "\x00"}), extraction)
    row = db.row("SELECT name, value_text, raw FROM v_fields")
    assert row == {"name": "na\ufffdme", "value_text": "va\ufffdlue", "raw": "r\ufffd\ufffd"}
    (finished,) = await ledger.finished_pages(page.reading_id)
    assert finished.extraction.text == "a\ufffdb"
    assert finished.extraction.raw == {"k\ufffd": ["\ufffd"], "score": None}


async def test_a_label_of_any_length_is_kept(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    name = "".join(chr(0x4E00 + n % 20_000) for n in range(20_000))
    await ledger.record_page(page, samples.attempt(), samples.extraction(samples.field(name, "x" * 100_000)))
    assert db.value("SELECT length(name) FROM v_fields") == 20_000


async def test_a_blank_page_is_a_success_without_fields(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    blank = dataclasses.replace(samples.extraction(), fields=(), blocks=(), text="")
    assert (await ledger.record_page(page, samples.attempt(width=0, height=0), blank)).document_finished
    assert db.row("SELECT status, width FROM pages") == {"status": "done", "width": None}


async def test_the_same_bytes_under_another_name_are_not_read_again(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, [samples.ref("a.pdf"), samples.ref("copy.pdf")])
    first, copy = await ledger.claim_documents(batch_id, "w", 9, 60)
    await ledger.record_opened(first, samples.opened(2))
    one, two = await ledger.claim_pages(batch_id, "w", 9, 60)
    await ledger.record_page(one, samples.attempt(), samples.extraction(samples.field("first")))
    await ledger.record_page_failure(two, samples.attempt(), samples.failure(), retry=False)
    outcome = await ledger.record_opened(copy, samples.opened(2))
    assert not outcome.document_finished  # a failed page is tried again under the new name
    (again,) = await ledger.claim_pages(batch_id, "w", 9, 60)
    assert (again.ref.key, again.page_no) == ("copy.pdf", 2)
    await ledger.record_page(again, samples.attempt(), samples.extraction(samples.field("second")))
    assert await samples.merge(ledger, batch_id) == 2
    assert db.rows("SELECT key, page_no, name FROM v_fields ORDER BY key, page_no") == [
        {"key": "a.pdf", "page_no": 1, "name": "first"},
        {"key": "copy.pdf", "page_no": 1, "name": "first"},
        {"key": "copy.pdf", "page_no": 2, "name": "second"},
    ]
    assert db.value("SELECT width FROM pages p JOIN documents d ON d.id = p.document_id WHERE key = 'copy.pdf' LIMIT 1")
    assert (await ledger.counts(batch_id)).pages_done == 3


async def test_reuse_finishes_a_document_and_stops_at_force_and_at_other_versions(ledger, samples) -> None:
    await samples.page(ledger)
    first = await ledger.start_batch(samples.spec())
    await samples.open_all(ledger, first.id)

    async def opened(key: str, *, version: str = "v1", force: bool = False) -> bool:
        batch_id = await samples.batch(ledger, [samples.ref(key)], version=version)
        (claim,) = await ledger.claim_documents(batch_id, "w", 9, 60)
        return (await ledger.record_opened(claim, samples.opened(1), force=force)).document_finished

    assert not await opened("b.pdf")
    batch = await ledger.start_batch(samples.spec())
    (claim,) = [each for each in await ledger.claim_pages(batch.id, "w", 9, 60) if each.ref.key == "b.pdf"]
    await ledger.record_page(claim, samples.attempt(), samples.extraction())
    assert await opened("c.pdf")
    assert not await opened("d.pdf", force=True)
    assert not await opened("e.pdf", version="v2")


async def test_a_record_for_a_page_that_is_gone_is_refused(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    db.execute("DELETE FROM documents")
    with pytest.raises(LeaseLost):
        await ledger.record_page(page, samples.attempt(), samples.extraction())
