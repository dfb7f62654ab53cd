"""What the command line reads."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from docmill.failures import ConfigurationError, DocumentNotFound, EmptyDocument
from docmill.ledger import BatchStatus, PageStatus
from storage.queries import LedgerQueries


@pytest.fixture
async def queries(url) -> AsyncIterator[LedgerQueries]:
    async with LedgerQueries.connect(url) as connected:
        yield connected


async def test_batches_newest_first(ledger, queries, samples) -> None:
    assert await queries.batches() == []
    with pytest.raises(ConfigurationError, match="no batch yet"):
        await queries.batch("last")
    ids = [(await ledger.start_batch(samples.spec(source=source))).id for source in "abc"]
    assert [row["batch_id"] for row in await queries.batches()] == ids[::-1]
    assert [row["source"] for row in await queries.batches(limit=2)] == ["c", "b"]
    assert (await queries.batch("last"))["batch_id"] == ids[-1]


async def test_a_batch_by_its_id_or_the_beginning_of_it(ledger, queries, samples, db) -> None:
    low, high = UUID("ab100000-0000-4000-8000-000000000000"), UUID("ab200000-0000-4000-8000-000000000000")
    for source, batch_id in (("a", low), ("b", high)):
        await ledger.start_batch(samples.spec(source=source))
        db.execute("UPDATE batches SET id = %(id)s WHERE source = %(source)s", id=batch_id, source=source)
    assert (await queries.batch(str(low)))["source"] == "a"
    assert (await queries.batch("AB2"))["source"] == "b"
    assert (await queries.batch("ab200000-00"))["source"] == "b"
    with pytest.raises(ConfigurationError, match="several batches") as caught:
        await queries.batch("ab")
    assert "ab100000" in caught.value.remedy
    for name in ("ab3", "xyz", "", "%", str(low) + "0"):
        with pytest.raises(ConfigurationError, match="no batch"):
            await queries.batch(name)


async def test_a_document_by_key_name_or_id(ledger, queries, samples) -> None:
    batch_id = await samples.batch(ledger, [samples.ref("in/a.pdf"), samples.ref("in/b_%.pdf")])
    await samples.read_all(ledger, batch_id)
    found = await queries.document("in/a.pdf")
    assert (found["key"], found["status"]) == ("in/a.pdf", "done")
    for name in ("a.pdf", str(found["document_id"]), str(found["reading_id"])[:13]):
        assert await queries.document(name) == found
    assert (await queries.document("b_%.pdf"))["key"] == "in/b_%.pdf"
    for name in ("c.pdf", "pdf", "in/", "_.pdf", "%"):
        with pytest.raises(DocumentNotFound, match="no document"):
            await queries.document(name)
    with pytest.raises(DocumentNotFound, match="invoice"):
        await queries.document("a.pdf", document_type="invoice")
    assert [row["key"] for row in await queries.documents(batch_id)] == ["in/a.pdf", "in/b_%.pdf"]


async def test_a_name_that_fits_several_documents(ledger, queries, samples) -> None:
    await samples.batch(ledger, [samples.ref("x/a.pdf"), samples.ref("y/a.pdf")])
    with pytest.raises(ConfigurationError, match="several documents") as caught:
        await queries.document("a.pdf")
    assert "x/a.pdf" in caught.value.remedy
    assert (await queries.document("y/a.pdf"))["key"] == "y/a.pdf"


async def test_a_document_read_twice_shows_its_current_reading(ledger, queries, samples) -> None:
    await samples.read_all(ledger, await samples.batch(ledger, [samples.ref()]))
    second = await samples.batch(ledger, [samples.ref()], version="v2")
    assert (await queries.document("a.pdf"))["extractor_version"] == "v1"
    await samples.read_all(ledger, second)
    assert (await queries.document("a.pdf"))["extractor_version"] == "v2"


async def test_pages_fields_and_failures(ledger, queries, samples) -> None:
    batch_id = await samples.batch(ledger, samples.refs(2))
    broken, good = await ledger.claim_documents(batch_id, "w", 9, 60)
    await ledger.record_unopened(broken, samples.failure(EmptyDocument("no bytes")))
    await ledger.record_opened(good, samples.opened(3))
    one, two, _ = await ledger.claim_pages(batch_id, "w", 9, 60)
    extraction = samples.extraction(samples.field(), samples.field("date", "soon"))
    await ledger.record_page(one, samples.attempt(turned=270), extraction)
    failure = samples.failure()
    await ledger.record_page_failure(two, samples.attempt(), failure, retry=False)

    first, second, third = await queries.pages(good.reading_id)
    assert (first.status, first.width, first.height, first.turned) == (PageStatus.DONE, 1240, 1754, 270)
    assert (first.extraction, first.failure) == (extraction, None)
    assert (second.status, second.extraction, second.failure) == (PageStatus.FAILED, None, failure)
    assert (second.width, second.attempts) == (1240, 1)
    assert (third.status, third.width, third.extraction, third.failure) == (PageStatus.CLAIMED, None, None, None)
    assert [page.page_no for page in await queries.pages(good.reading_id, 2)] == [2]

    assert [row["name"] for row in await queries.fields(good.reading_id)] == ["total", "date"]
    assert await queries.fields(good.reading_id, 2) == []
    assert {row["code"] for row in await queries.failures(batch_id)} == {"unreadable_page", "empty_document"}
    assert [row["key"] for row in await queries.failures(code="empty_document")] == ["in/00000.pdf"]
    assert [row["page_no"] for row in await queries.failures(reading_id=good.reading_id)] == [2]
    assert len(await queries.failures(limit=1)) == 1
    assert (await queries.throughput(batch_id))[0]["pages"] == 2
    assert await queries.result(good.reading_id) is None


async def test_the_merged_result(ledger, queries, samples) -> None:
    batch_id = await samples.batch(ledger, [samples.ref()])
    claims = await samples.read_all(ledger, batch_id)
    await ledger.finish_batch(batch_id, BatchStatus.COMPLETED, {})
    assert await queries.result(claims[0].reading_id) == {"fields": []}
