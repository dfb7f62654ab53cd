"""Merging, and putting back to work what failed."""

import pytest

from docmill.failures import EmptyDocument, LeaseLost, TruncatedOutput
from docmill.ledger import Added, BatchStatus


async def outcomes(ledger, samples, batch_id, good: list[bool]) -> None:
    claims = await ledger.claim_pages(batch_id, "w", len(good), 60)
    for claim, fine in zip(claims, good, strict=True):
        if fine:
            await ledger.record_page(claim, samples.attempt(), samples.extraction())
        else:
            await ledger.record_page_failure(claim, samples.attempt(), samples.failure(), retry=False)


@pytest.mark.parametrize(
    ("good", "status"), [([True, True], "done"), ([True, False], "partial"), ([False, False], "failed")]
)
async def test_the_final_status(ledger, samples, db, good, status) -> None:
    batch_id = await samples.batch(ledger, [samples.ref()])
    await samples.open_all(ledger, batch_id, pages=2)
    await outcomes(ledger, samples, batch_id, good[:1])
    assert await ledger.unmerged(batch_id) == []
    await outcomes(ledger, samples, batch_id, good[1:])
    (reading_id,) = await ledger.unmerged(batch_id)
    await ledger.record_result(reading_id, {"fields": [{"name": "total"}], "text": "\x00"}, 0.75)
    assert await ledger.unmerged(batch_id) == []
    assert db.row("SELECT status, result, confidence FROM readings") == {
        "status": status,
        "result": {"fields": [{"name": "total"}], "text": "\ufffd"},
        "confidence": 0.75,
    }


async def test_a_result_that_comes_too_early_or_too_late_is_not_stored(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, [samples.ref()])
    await samples.open_all(ledger, batch_id, pages=2)
    reading_id = db.value("SELECT id FROM readings")
    await outcomes(ledger, samples, batch_id, [True])
    await ledger.record_result(reading_id, {"early": True}, 1.0)
    assert db.row("SELECT status, result FROM readings") == {"status": "opened", "result": None}
    await outcomes(ledger, samples, batch_id, [True])
    await ledger.add_documents(batch_id, [samples.ref()])
    await ledger.record_result(reading_id, {"good": True}, 1.0)
    await ledger.add_documents(batch_id, [samples.ref()], force=True)
    await ledger.record_result(reading_id, {"late": True}, 1.0)
    assert db.row("SELECT status, result FROM readings") == {"status": "pending", "result": {"good": True}}


async def test_failed_work_is_put_back_as_another_batchs(ledger, samples, db) -> None:
    first = await samples.batch(ledger, samples.refs(3))
    broken, *rest = await ledger.claim_documents(first, "w", 9, 60)
    await ledger.record_unopened(broken, samples.failure(EmptyDocument("no bytes")))
    for number, claim in enumerate(rest):
        await ledger.record_opened(claim, samples.opened(2, f"{number:064}"))
    await outcomes(ledger, samples, first, [True, False, True, False])
    await samples.merge(ledger, first)
    await ledger.finish_batch(first, BatchStatus.FAILED, {})

    again = (await ledger.start_batch(samples.spec(source="reprocess"))).id
    assert await ledger.reopen_failed(again, source_batch=first) == 3
    assert db.value("SELECT count(*) FROM v_failures") == 3  # open until the outcome is known
    assert await ledger.reopen_failed(again, source_batch=first) == 0
    left = await ledger.remaining(again)
    assert (left.documents_pending, left.pages_pending) == (1, 2)
    (claim,) = await ledger.claim_documents(again, "w", 9, 60)
    await ledger.record_opened(claim, samples.opened(1, "f" * 64))
    claims = await ledger.claim_pages(again, "w", 9, 60)
    assert [claim.attempt_no for claim in claims] == [1, 1, 1]
    for claim in claims[:2]:
        await ledger.record_page(claim, samples.attempt(), samples.extraction())
    truncated = samples.failure(TruncatedOutput("cut off"))
    await ledger.record_page_failure(claims[2], samples.attempt(), truncated, retry=False)
    assert await samples.merge(ledger, again) == 3
    assert [(row["batch_id"], row["code"]) for row in db.rows("SELECT * FROM v_failures")] == [
        (again, "truncated_output")
    ]
    counts = await ledger.counts(again)
    assert (counts.documents_done, counts.documents_partial, counts.failures_by_code) == (2, 1, {"truncated_output": 1})
    # The first batch still says how it ended.
    kept = db.row("SELECT pages_total, pages_failed, documents_unopened FROM v_batches WHERE batch_id = %(b)s", b=first)
    assert kept == {"pages_total": 4, "pages_failed": 2, "documents_unopened": 1}


async def test_only_what_matches_every_filter_is_put_back(ledger, samples) -> None:
    first = await samples.batch(ledger, samples.refs(4))
    await samples.open_all(ledger, first)
    truncated = samples.failure(TruncatedOutput("cut off"))
    for number, claim in enumerate(await ledger.claim_pages(first, "w", 9, 60)):
        failure = truncated if number % 2 else samples.failure()
        await ledger.record_page_failure(claim, samples.attempt(), failure, retry=False)
    other = (await ledger.start_batch(samples.spec(version="v2"))).id
    assert await ledger.reopen_failed(other) == 0
    again = (await ledger.start_batch(samples.spec(source="reprocess"))).id
    assert await ledger.reopen_failed(again, source_batch=again) == 0
    assert await ledger.reopen_failed(again, codes=["empty_document"]) == 0
    assert await ledger.reopen_failed(again, codes=["truncated_output"], document_key="in/00000.pdf") == 0
    assert await ledger.reopen_failed(again, codes=["truncated_output"], document_key="in/00001.pdf") == 1
    assert await ledger.reopen_failed(again, codes=["truncated_output", "unreadable_page"], limit=2) == 2
    assert await ledger.reopen_failed(again) == 1


async def test_a_page_put_back_while_its_document_is_being_read_takes_the_rest_along(ledger, samples) -> None:
    first = await samples.batch(ledger, [samples.ref()])
    await samples.open_all(ledger, first, pages=3)
    await outcomes(ledger, samples, first, [False])
    (held,) = await ledger.claim_pages(first, "w", 1, 60)
    again = (await ledger.start_batch(samples.spec(source="reprocess"))).id
    assert await ledger.reopen_failed(again) == 1
    assert [claim.page_no for claim in await ledger.claim_pages(again, "w", 9, 60)] == [1, 3]
    assert not (await ledger.record_page(held, samples.attempt(), samples.extraction())).document_finished
    assert (await ledger.remaining(first)).nothing


async def test_a_late_record_of_before_is_refused_after_reading_again(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    batch_id = db.value("SELECT id FROM batches")
    db.execute("UPDATE pages SET lease_expires_at = now() - interval '1 s'")
    assert await ledger.claim_pages(batch_id, "w", 1, 60, max_crashes=1) == []
    await samples.merge(ledger, batch_id)
    assert await ledger.add_documents(batch_id, [samples.ref()], force=True) == Added(forced=1)
    await samples.open_all(ledger, batch_id)
    (new,) = await ledger.claim_pages(batch_id, page.holder, 1, 60)
    assert new.page_id == page.page_id
    with pytest.raises(LeaseLost):
        await ledger.record_page(page, samples.attempt(), samples.extraction())


async def test_a_better_scan_under_the_same_name_closes_the_old_failure(ledger, samples, db) -> None:
    first = await samples.batch(ledger, [samples.ref(), samples.ref("other.pdf")])
    for claim in await ledger.claim_documents(first, "w", 9, 60):
        await ledger.record_unopened(claim, samples.failure(EmptyDocument("no bytes")))
    later = samples.ref(etag="2", last_modified=samples.now.replace(year=2027))
    await ledger.add_documents(first, [later])
    await samples.read_all(ledger, first)
    assert [row["key"] for row in db.rows("SELECT key FROM v_failures")] == ["other.pdf"]


async def test_a_shorter_document_on_reading_again_loses_the_surplus_pages(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, [samples.ref()])
    await samples.open_all(ledger, batch_id, pages=3)
    await outcomes(ledger, samples, batch_id, [True, True, False])
    await samples.merge(ledger, batch_id)
    await ledger.add_documents(batch_id, [samples.ref()], force=True)
    await samples.open_all(ledger, batch_id, pages=2)
    await outcomes(ledger, samples, batch_id, [True, True])
    await samples.merge(ledger, batch_id)
    assert db.value("SELECT status FROM v_documents") == "done"
    assert db.value("SELECT count(*) FROM v_failures") == 0


async def test_of_several_pages_the_result_says_which_value_stands_for_the_document(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, [samples.ref()])
    await samples.open_all(ledger, batch_id, pages=2)
    await outcomes(ledger, samples, batch_id, [True, True])
    name, raw = db.rows("SELECT DISTINCT name, raw FROM fields WHERE row IS NULL ORDER BY name")[0].values()
    (reading_id,) = await ledger.unmerged(batch_id)
    await ledger.record_result(reading_id, {"fields": {name: {"page": 2, "raw": raw}}}, 0.9)
    chosen = db.rows(f"SELECT page_no, chosen FROM v_fields WHERE name = '{name}' ORDER BY page_no")
    assert chosen == [{"page_no": 1, "chosen": False}, {"page_no": 2, "chosen": True}]
