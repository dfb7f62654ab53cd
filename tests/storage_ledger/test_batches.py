"""Batches: begun, gone on with, counted, closed."""

import asyncio
import dataclasses
from uuid import uuid4

import pytest

from docmill.failures import ConfigurationError, EmptyDocument
from docmill.ledger import BatchCounts, BatchStatus
from storage.ledger.postgres import PostgresLedger


async def test_a_new_batch_is_what_was_asked_for(ledger, samples) -> None:
    run = uuid4()
    batch = await ledger.start_batch(samples.spec(flow_run_id=run))
    assert batch.spec == samples.spec(flow_run_id=run)
    assert (batch.status, batch.joined, batch.finished_at) == (BatchStatus.RUNNING, False, None)


async def test_an_unfinished_batch_is_gone_on_with(ledger, samples) -> None:
    first = await ledger.start_batch(samples.spec(flow_run_id=uuid4()))
    run = uuid4()
    again = await ledger.start_batch(samples.spec(flow_run_id=run))
    assert (again.id, again.joined, again.spec.flow_run_id) == (first.id, True, run)
    others = [
        await ledger.start_batch(samples.spec(source="s3://forms/other")),
        await ledger.start_batch(samples.spec(version="v2")),
    ]
    assert len({first.id, *(batch.id for batch in others)}) == 3
    await ledger.finish_batch(first.id, BatchStatus.CANCELLED, {})
    assert (await ledger.start_batch(samples.spec())).id != first.id


async def test_starters_at_the_same_moment_get_one_batch(url, samples) -> None:
    async def start() -> tuple[object, bool]:
        async with PostgresLedger.connect(url, pool_size=1) as ledger:
            batch = await ledger.start_batch(samples.spec())
            return batch.id, batch.joined

    started = await asyncio.gather(*(start() for _ in range(6)))
    assert len({batch_id for batch_id, _ in started}) == 1
    assert sorted(joined for _, joined in started) == [False] + [True] * 5


async def test_counts_come_from_the_rows(ledger, samples) -> None:
    batch_id = await samples.batch(ledger, samples.refs(4))
    assert await ledger.counts(batch_id) == BatchCounts(documents_total=4)
    broken, *rest = await ledger.claim_documents(batch_id, "w", 9, 60)
    await ledger.record_unopened(broken, samples.failure(EmptyDocument("no bytes")))
    for number, claim in enumerate(rest):
        await ledger.record_opened(claim, samples.opened(2, f"{number:064}"))
    pages = await ledger.claim_pages(batch_id, "w", 9, 60)
    outcomes = [True, True, True, False, False, False]
    for claim, good in zip(pages, outcomes, strict=True):
        if good:
            doubtful = samples.field("date", "soon", needs_review=True)
            await ledger.record_page(claim, samples.attempt(), samples.extraction(samples.field(), doubtful))
        else:
            await ledger.record_page_failure(claim, samples.attempt(), samples.failure(), retry=False)
    await samples.merge(ledger, batch_id)
    found = await ledger.counts(batch_id)
    assert found == BatchCounts(
        documents_total=4,
        documents_done=1,
        documents_partial=1,
        documents_failed=2,
        documents_unopened=1,
        pages_total=6,
        pages_done=3,
        pages_failed=3,
        fields=6,
        fields_to_review=3,
        failures_by_code={"unreadable_page": 3, "empty_document": 1},
    )
    assert found.failure_rate == pytest.approx(4 / 7)


async def test_a_batch_is_closed_once_and_keeps_what_it_closed_with(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(1))
    await samples.read_all(ledger, batch_id)
    counted = await ledger.counts(batch_id)
    await ledger.finish_batch(batch_id, BatchStatus.COMPLETED, {"pages": 1, "note": "a\x00b"})
    first = db.row("SELECT * FROM batches")
    await ledger.finish_batch(batch_id, BatchStatus.FAILED, {"pages": 2})
    assert db.row("SELECT * FROM batches") == first
    assert (first["status"], first["summary"]) == ("completed", {"pages": 1, "note": "a\ufffdb"})
    assert first["counts"] == dataclasses.asdict(counted)


async def test_what_remains(ledger, samples, db) -> None:
    batch_id = await samples.batch(ledger, samples.refs(3))
    assert (await ledger.remaining(batch_id)).documents_pending == 3
    claims = await ledger.claim_documents(batch_id, "w", 2, 60)
    left = await ledger.remaining(batch_id)
    assert (left.documents_pending, left.documents_claimed, left.nothing) == (1, 2, False)
    assert left.next_expiry == claims[0].expires_at
    await ledger.release(claims)
    await samples.open_all(ledger, batch_id, pages=2)
    (page, other) = await ledger.claim_pages(batch_id, "w", 2, 60)
    await ledger.renew([other], 600)
    left = await ledger.remaining(batch_id)
    assert (left.documents_pending, left.documents_claimed, left.pages_pending, left.pages_claimed) == (0, 0, 4, 2)
    assert left.next_expiry == page.expires_at
    db.execute("UPDATE pages SET lease_expires_at = now() - interval '1 s' WHERE status = 'claimed'")
    left = await ledger.remaining(batch_id)
    assert (left.pages_pending, left.pages_claimed, left.next_expiry) == (6, 0, None)
    await samples.read_all(ledger, batch_id)
    assert (await ledger.remaining(batch_id)).nothing


async def test_an_unknown_batch_is_named(ledger, samples) -> None:
    with pytest.raises(ConfigurationError, match="no batch"):
        await ledger.add_documents(uuid4(), [samples.ref()])
    with pytest.raises(ConfigurationError, match="no batch"):
        await ledger.counts(uuid4())
