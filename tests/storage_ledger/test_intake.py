"""A listing becomes work: nothing twice, and every object in exactly one count."""

import asyncio
import dataclasses

from docmill.failures import EmptyDocument
from docmill.ledger import Added, BatchStatus
from storage.ledger.postgres import PostgresLedger


async def test_new_then_unchanged(ledger, samples, db) -> None:
    refs = samples.refs(5)
    batch = await ledger.start_batch(samples.spec())
    assert await ledger.add_documents(batch.id, refs) == Added(new=5)
    await samples.read_all(ledger, batch.id)
    await ledger.finish_batch(batch.id, BatchStatus.COMPLETED, {})
    second = await ledger.start_batch(samples.spec())
    assert await ledger.add_documents(second.id, [*refs, samples.ref("in/new.pdf")]) == Added(new=1, unchanged=5)
    assert [claim.ref.key for claim in await ledger.claim_documents(second.id, "w", 99, 60)] == ["in/new.pdf"]
    assert (await ledger.counts(second.id)).documents_unchanged == 5
    assert db.value("SELECT count(*) FROM documents") == 6


async def test_the_same_listing_again_changes_nothing(ledger, samples, db) -> None:
    refs = samples.refs(3)
    batch = await ledger.start_batch(samples.spec())
    await ledger.add_documents(batch.id, refs)
    before = db.rows("SELECT * FROM readings ORDER BY position")
    assert await ledger.add_documents(batch.id, [*refs, *refs]) == Added(resumed=3)
    assert db.rows("SELECT * FROM readings ORDER BY position") == before


async def test_a_failed_document_is_not_read_again_by_itself(ledger, samples) -> None:
    batch_id = await samples.batch(ledger, [samples.ref()])
    (claim,) = await ledger.claim_documents(batch_id, "w", 1, 60)
    await ledger.record_unopened(claim, samples.failure(EmptyDocument("no bytes")))
    assert await ledger.add_documents(batch_id, [samples.ref()]) == Added(unchanged=1)
    assert (await ledger.remaining(batch_id)).nothing


async def test_another_extractor_version_and_another_etag_are_new(ledger, samples) -> None:
    await samples.read_all(ledger, await samples.batch(ledger, [samples.ref()]))
    other = await ledger.start_batch(samples.spec(version="v2"))
    assert await ledger.add_documents(other.id, [samples.ref()]) == Added(new=1)
    same = await ledger.start_batch(samples.spec())
    assert await ledger.add_documents(same.id, [samples.ref(etag="2")]) == Added(new=1)


async def test_unfinished_work_is_taken_over_with_its_pages(ledger, samples, db) -> None:
    old = await samples.batch(ledger, samples.refs(3))
    (claim,) = await ledger.claim_documents(old, "w", 1, 60)
    await ledger.record_opened(claim, samples.opened(3))
    (page,) = await ledger.claim_pages(old, "w", 1, 60)
    await ledger.record_page(page, samples.attempt(), samples.extraction())
    await ledger.finish_batch(old, BatchStatus.CANCELLED, {})
    new = await ledger.start_batch(samples.spec())
    assert await ledger.add_documents(new.id, samples.refs(3)) == Added(resumed=3)
    assert db.value("SELECT count(*) FROM pages WHERE batch_id = %(b)s", b=new.id) == 3
    assert [c.page_no for c in await ledger.claim_pages(new.id, "w", 9, 60)] == [2, 3]
    assert len(await ledger.claim_documents(new.id, "w", 9, 60)) == 2
    assert (await ledger.remaining(old)).nothing


async def test_a_holder_keeps_its_claim_when_another_batch_takes_over(ledger, samples, db) -> None:
    page = await samples.page(ledger)
    other = await ledger.start_batch(samples.spec(source="s3://forms"))
    assert await ledger.add_documents(other.id, [samples.ref()]) == Added(resumed=1)
    assert await ledger.claim_pages(other.id, "w2", 9, 60) == []
    await ledger.record_page(page, samples.attempt(), samples.extraction())
    assert db.value("SELECT batch_id FROM attempts") == other.id


async def test_force_reads_what_is_finished_again_once(ledger, samples, db) -> None:
    refs = samples.refs(2)
    first = await samples.batch(ledger, refs)
    await samples.read_all(ledger, first)
    await ledger.finish_batch(first, BatchStatus.COMPLETED, {})
    forced = await ledger.start_batch(samples.spec())
    assert await ledger.add_documents(forced.id, [*refs, samples.ref("c.pdf")], force=True) == Added(new=1, forced=2)
    # The old values stay in sight until there are new ones.
    assert db.value("SELECT count(*) FROM v_fields") == 2
    # An interruption between listing and opening must not turn the rest into reuse.
    await samples.open_all(ledger, forced.id)
    claims = await ledger.claim_pages(forced.id, "w", 99, 60)
    assert len(claims) == 3
    changed = samples.extraction(samples.field(value="new"))
    for claim in claims:
        await ledger.record_page(claim, samples.attempt(), changed)
    await samples.merge(ledger, forced.id)
    assert {row["value_text"] for row in db.rows("SELECT value_text FROM v_fields")} == {"new"}
    # Gone on with after a crash: what this batch has read again is not read a third time.
    assert await ledger.add_documents(forced.id, refs, force=True) == Added(unchanged=2)


async def test_force_within_the_batch_that_read_it(ledger, samples) -> None:
    batch_id = await samples.batch(ledger, [samples.ref()])
    await samples.read_all(ledger, batch_id)
    assert await ledger.add_documents(batch_id, [samples.ref()], force=True) == Added(forced=1)
    assert len(await samples.read_all(ledger, batch_id)) == 1


async def test_ten_thousand_objects_in_one_listing(ledger, samples, db) -> None:
    refs = samples.refs(10_000)
    batch = await ledger.start_batch(samples.spec())
    assert await ledger.add_documents(batch.id, refs[:4_000]) == Added(new=4_000)
    assert await ledger.add_documents(batch.id, refs) == Added(new=6_000, resumed=4_000)
    assert db.value("SELECT count(*) FROM readings WHERE batch_id = %(b)s", b=batch.id) == 10_000
    first = await ledger.claim_documents(batch.id, "w", 3, 60)
    assert [claim.ref.key for claim in first] == [ref.key for ref in refs[:3]]


async def test_more_than_one_piece_is_counted_together(ledger, samples) -> None:
    batch = await ledger.start_batch(samples.spec())
    assert await ledger.add_documents(batch.id, samples.refs(10_003)) == Added(new=10_003)
    assert await ledger.add_documents(batch.id, []) == Added()


async def test_listings_at_the_same_moment_add_each_object_once(url, samples, db) -> None:
    refs = samples.refs(400)

    async def add(source: str, listed: list) -> Added:
        async with PostgresLedger.connect(url, pool_size=1) as ledger:
            batch = await ledger.start_batch(samples.spec(source=source))
            return await ledger.add_documents(batch.id, listed)

    added = await asyncio.gather(*(add(f"s3://forms/{n}", refs[:: (-1) ** n]) for n in range(4)))
    assert sum(each.new for each in added) == 400
    assert sum(each.resumed for each in added) == 1200
    assert db.value("SELECT count(*) FROM readings") == 400


async def test_what_a_listing_says_is_kept(ledger, samples) -> None:
    ref = samples.ref(
        "資料/a b%'\"\\.pdf", version_id="v9", metadata={"patient": 'a"b\\c', "note": "né"}, content_type=None
    )
    batch_id = await samples.batch(ledger, [ref])
    (claim,) = await ledger.claim_documents(batch_id, "w", 1, 60)
    assert claim.ref == ref
    newer = dataclasses.replace(ref, version_id="v10")
    await ledger.release([claim])
    await ledger.add_documents(batch_id, [newer])
    (claim,) = await ledger.claim_documents(batch_id, "w", 1, 60)
    assert claim.ref == newer


async def test_one_impossible_name_does_not_stop_a_listing(ledger, samples) -> None:
    batch = await ledger.start_batch(samples.spec())
    refs = [samples.ref("ok.pdf"), samples.ref("bad\udce9.pdf"), samples.ref("nul\x00.pdf")]
    assert await ledger.add_documents(batch.id, refs) == Added(new=3)
