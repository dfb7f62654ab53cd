"""Claims: each page to one worker, until its lease runs out."""

import asyncio
from collections import Counter

import pytest

from docmill.failures import LeaseLost
from storage.ledger.postgres import PostgresLedger


def expire(db) -> None:
    db.execute("UPDATE pages SET lease_expires_at = now() - interval '1 s' WHERE status = 'claimed'")
    db.execute("UPDATE readings SET lease_expires_at = now() - interval '1 s' WHERE lease_holder IS NOT NULL")


async def test_workers_that_race_get_every_page_exactly_once(url, ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(30))
    await samples.open_all(ledger, batch_id, pages=5)
    read: Counter = Counter()

    async def work(name: str, shard: int) -> int:
        finished = 0
        async with PostgresLedger.connect(url, pool_size=1) as mine:
            while claims := await mine.claim_pages(batch_id, name, shard, 60):
                for claim in claims:
                    read[claim.page_id] += 1
                    outcome = await mine.record_page(claim, samples.attempt(), samples.extraction())
                    finished += outcome.document_finished
        return finished

    finished = await asyncio.gather(*(work(f"w{number}", shard) for number, shard in enumerate((1, 3, 7, 2))))
    assert len(read) == 150
    assert set(read.values()) == {1}
    assert sum(finished) == 30  # each document was finished by exactly one record
    assert db.row("SELECT count(*) AS attempts, count(DISTINCT page_id) AS pages FROM attempts") == {
        "attempts": 150,
        "pages": 150,
    }
    assert db.value("SELECT count(DISTINCT holder) FROM attempts") > 1


async def test_openers_that_race_get_every_document_exactly_once(url, ledger, samples) -> None:
    batch_id = await samples.batch(ledger, samples.refs(60))

    async def work(name: str) -> list:
        async with PostgresLedger.connect(url, pool_size=1) as mine:
            taken = []
            while claims := await mine.claim_documents(batch_id, name, 4, 60):
                taken += [claim.reading_id for claim in claims]
            return taken

    taken = [each for mine in await asyncio.gather(work("a"), work("b"), work("c")) for each in mine]
    assert len(taken) == len(set(taken)) == 60


async def test_a_shard_keeps_documents_together_and_in_order(ledger, samples) -> None:
    batch_id = await samples.batch(ledger, samples.refs(3))
    claims = await ledger.claim_documents(batch_id, "w", 9, 60)
    for number, claim in enumerate(reversed(claims)):  # opened in another order than listed
        await ledger.record_opened(claim, samples.opened(2, f"{number:064}"))
    shard = await ledger.claim_pages(batch_id, "w", 3, 60)
    assert [(c.ref.key, c.page_no) for c in shard] == [
        ("in/00000.pdf", 1),
        ("in/00000.pdf", 2),
        ("in/00001.pdf", 1),
    ]
    (first, *_) = shard
    assert (first.page_count, first.media_type, first.attempt_no, first.fence) == (2, "application/pdf", 1, 1)


async def test_an_expired_lease_is_taken_over_and_the_late_record_refused(ledger, samples, db) -> None:
    late = await samples.page(ledger)
    expire(db)
    (claim,) = await ledger.claim_pages(db.value("SELECT id FROM batches"), "other", 9, 60)
    assert (claim.page_id, claim.fence, claim.attempt_no) == (late.page_id, late.fence + 1, 1)
    before = db.rows("SELECT * FROM pages")
    with pytest.raises(LeaseLost):
        await ledger.record_page(late, samples.attempt(), samples.extraction())
    with pytest.raises(LeaseLost):
        await ledger.record_page_failure(late, samples.attempt(), samples.failure(), retry=True)
    assert db.rows("SELECT * FROM pages") == before
    assert db.value("SELECT count(*) FROM attempts") == 0
    assert (await ledger.record_page(claim, samples.attempt(), samples.extraction())).document_finished


async def test_a_late_record_after_the_other_finished_is_refused(ledger, samples, db) -> None:
    late = await samples.page(ledger)
    expire(db)
    (claim,) = await ledger.claim_pages(db.value("SELECT id FROM batches"), late.holder, 9, 60)
    await ledger.record_page(claim, samples.attempt(), samples.extraction())
    with pytest.raises(LeaseLost):
        await ledger.record_page(late, samples.attempt(), samples.extraction())
    assert db.value("SELECT count(*) FROM extractions") == 1


async def test_a_lease_that_ran_out_but_nobody_took_still_records(ledger, samples, db) -> None:
    claim = await samples.page(ledger)
    expire(db)
    assert (await ledger.record_page(claim, samples.attempt(), samples.extraction())).document_finished


async def test_renewing(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(3))
    await samples.open_all(ledger, batch_id)
    await ledger.add_documents(batch_id, [samples.ref("late.pdf")])
    (document,) = await ledger.claim_documents(batch_id, "w", 9, 60)
    pages = await ledger.claim_pages(batch_id, "w", 9, 60)
    assert await ledger.renew([*pages, document], 600) == set()
    assert db.value("SELECT min(lease_expires_at) > now() + interval '500 s' FROM pages") is True
    expire(db)
    (taken, *_) = await ledger.claim_pages(batch_id, "thief", 1, 60)
    assert await ledger.renew([*pages, document], 600) == {taken.page_id}
    await ledger.record_page(pages[1], samples.attempt(), samples.extraction())
    await ledger.record_unopened(document, samples.failure())
    assert await ledger.renew([*pages, document], 600) == {taken.page_id, pages[1].page_id, document.reading_id}
    assert await ledger.renew([], 600) == set()


async def test_releasing_spends_nothing(ledger, samples, db) -> None:
    claim = await samples.page(ledger)
    batch_id = db.value("SELECT id FROM batches")
    await ledger.add_documents(batch_id, [samples.ref("b.pdf")])
    (document,) = await ledger.claim_documents(batch_id, "w", 9, 60)
    await ledger.release([claim, document])
    assert db.row("SELECT status, attempts, crashes FROM pages") == {"status": "pending", "attempts": 0, "crashes": 0}
    with pytest.raises(LeaseLost):
        await ledger.record_page(claim, samples.attempt(), samples.extraction())
    with pytest.raises(LeaseLost):
        await ledger.record_opened(document, samples.opened())
    (again,) = await ledger.claim_pages(batch_id, "w", 9, 60)
    await ledger.release([claim])  # a release of before must not free what was claimed since
    assert (again.attempt_no, again.fence) == (1, 2)
    assert await ledger.claim_pages(batch_id, "w", 9, 60) == []
    assert len(await ledger.claim_documents(batch_id, "w", 9, 60)) == 1


async def test_a_page_that_kills_its_workers_is_set_aside(ledger, samples, db) -> None:
    claim = await samples.page(ledger)
    batch_id = db.value("SELECT id FROM batches")
    for crash in (1, 2):
        expire(db)
        (claim,) = await ledger.claim_pages(batch_id, f"w{crash}", 9, 60, max_crashes=3)
        assert db.value("SELECT crashes FROM pages") == crash
    expire(db)
    assert await ledger.claim_pages(batch_id, "w", 9, 60, max_crashes=3) == []
    assert db.row("SELECT status, crashes FROM pages") == {"status": "failed", "crashes": 3}
    failure = db.row("SELECT * FROM v_failures")
    assert (failure["code"], failure["page_no"], failure["scope"]) == ("poison_page", 1, "page")
    assert "reprocess" in failure["remedy"]
    assert (await ledger.remaining(batch_id)).nothing
    assert await ledger.unmerged(batch_id) == [claim.reading_id]  # it was the document's last page
    await samples.merge(ledger, batch_id)
    assert db.value("SELECT status FROM v_documents") == "failed"
    with pytest.raises(LeaseLost):
        await ledger.record_page(claim, samples.attempt(), samples.extraction())


async def test_a_poisoned_page_does_not_stop_the_rest(ledger, samples, db) -> None:
    await samples.page(ledger, pages=3)
    batch_id = db.value("SELECT id FROM batches")
    expire(db)
    rest = await ledger.claim_pages(batch_id, "w", 9, 60, max_crashes=1)
    assert [claim.page_no for claim in rest] == [2, 3]
    assert await ledger.unmerged(batch_id) == []


async def test_a_document_that_kills_its_openers_is_set_aside(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(1))
    for _ in range(3):
        assert len(await ledger.claim_documents(batch_id, "w", 9, 60, max_crashes=3)) == 1
        expire(db)
    assert await ledger.claim_documents(batch_id, "w", 9, 60, max_crashes=3) == []
    assert db.row("SELECT scope, code, page_no FROM v_failures") == {
        "scope": "document",
        "code": "poison_page",
        "page_no": None,
    }
    assert (await ledger.counts(batch_id)).documents_unopened == 1


async def test_a_late_opening_is_refused(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(1))
    (late,) = await ledger.claim_documents(batch_id, "dead", 9, 60)
    expire(db)
    (claim,) = await ledger.claim_documents(batch_id, "alive", 9, 60)
    with pytest.raises(LeaseLost):
        await ledger.record_opened(late, samples.opened(7))
    with pytest.raises(LeaseLost):
        await ledger.record_unopened(late, samples.failure())
    assert db.value("SELECT count(*) FROM pages") == 0
    await ledger.record_opened(claim, samples.opened(2))
    with pytest.raises(LeaseLost):
        await ledger.record_opened(late, samples.opened(7))
    assert db.value("SELECT count(*) FROM pages") == 2


async def test_a_claim_shows_life_on_the_batch(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(1))
    db.execute("UPDATE batches SET heartbeat_at = now() - interval '1 hour'")
    await ledger.claim_pages(batch_id, "w", 9, 60)
    assert db.value("SELECT heartbeat_at > now() - interval '1 minute' FROM v_batches") is True
