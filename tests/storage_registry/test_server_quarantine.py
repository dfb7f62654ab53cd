"""Pages that crash model servers are set aside, and get a fresh count once they are reopened."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from docmill.extraction import Extraction
from docmill.ledger import Attempt, OpenedDocument
from docmill.model_servers import ServerState
from docmill.ports import ObjectRef

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ATTEMPT = Attempt(NOW, NOW + timedelta(seconds=2), "vision", "qwen")
EXTRACTION = Extraction("vision", "receipt", (), (), "", 0.9)


@pytest.fixture
async def crash(postgres_bench):
    """Restart a server with the pages in flight."""
    registry = postgres_bench.registry
    taken = await registry.acquire("qwen", "flow", 600, start_on="gpu1")

    async def crash(*pages) -> None:
        await registry.enter(taken.to_start, ServerState.READY)
        for page in pages:
            await registry.begin_request(uuid4(), taken.leases[0], page)
        await registry.record_restart(
            taken.to_start, code="server_restarted", message="died", exit_code=-9, log_tail=""
        )

    return crash


async def test_a_page_in_flight_at_two_restarts_is_set_aside(ledger, open_document, crash, db, postgres_bench) -> None:
    batch_id, pages = await open_document(3)
    await crash(*pages)
    await crash(pages[1])
    claims = await ledger.claim_pages(batch_id, "w", 9, 60)
    assert [claim.page_no for claim in claims] == [1, 3]
    failure = db.row("SELECT code, page_no, message, remedy FROM v_failures")
    assert (failure["code"], failure["page_no"]) == ("poison_page", 2)
    assert "two restarts of a model server" in failure["message"]
    assert "reprocess --code poison_page" in failure["remedy"]
    assert db.row("SELECT status, crashes, attempts FROM pages WHERE page_no = 2") == {
        "status": "failed",
        "crashes": 0,  # no worker died of it
        "attempts": 0,
    }
    assert await postgres_bench.registry.crashes_of(pages[1]) == 2
    for claim in claims:  # the others were in flight once: suspects, no more
        await ledger.record_page(claim, ATTEMPT, EXTRACTION)
    assert (await ledger.remaining(batch_id)).nothing
    assert await ledger.unmerged(batch_id) == [claims[0].reading_id]


async def test_reprocessing_gives_a_fresh_count(ledger, open_document, crash, db, postgres_bench) -> None:
    batch_id, (page,) = await open_document(1)
    await crash(page)
    await crash(page)
    assert await ledger.claim_pages(batch_id, "w", 9, 60) == []
    assert await ledger.reopen_failed(batch_id, codes=["poison_page"]) == 1
    assert await postgres_bench.registry.crashes_of(page) == 0
    await crash(page)
    (claim,) = await ledger.claim_pages(batch_id, "w", 9, 60)
    await crash(page)
    await ledger.release([claim])
    assert await ledger.claim_pages(batch_id, "w", 9, 60) == []
    assert db.row("SELECT count(*) AS n FROM v_failures WHERE code = 'poison_page'") == {"n": 1}
    # What happened is kept: it is only counted afresh.
    assert db.row("SELECT count(*) AS n FROM v_model_restarts WHERE page_id IS NOT NULL") == {"n": 4}


async def test_a_page_that_is_worked_on_is_left_to_its_worker(ledger, open_document, crash, db) -> None:
    batch_id, (page,) = await open_document(1)
    (claim,) = await ledger.claim_pages(batch_id, "w", 9, 60)
    await crash(page)
    await crash(page)
    assert await ledger.claim_pages(batch_id, "other", 9, 60) == []
    assert db.row("SELECT status FROM pages") == {"status": "claimed"}
    await ledger.record_page(claim, ATTEMPT, EXTRACTION)  # it went through after all
    assert db.row("SELECT status FROM pages") == {"status": "done"}
    assert db.rows("SELECT code FROM v_failures") == []


async def test_a_dead_worker_leaves_such_a_page_for_nobody(ledger, open_document, crash, db) -> None:
    batch_id, (page,) = await open_document(1)
    await ledger.claim_pages(batch_id, "doomed", 9, 60)
    await crash(page)
    await crash(page)
    db.execute("UPDATE pages SET lease_expires_at = now() - interval '1 second'")
    assert await ledger.claim_pages(batch_id, "w", 9, 60) == []
    failure = db.row("SELECT code, message FROM v_failures")
    assert failure["code"] == "poison_page"
    assert "model server" in failure["message"]
    assert db.row("SELECT status, crashes FROM pages") == {"status": "failed", "crashes": 1}


async def test_reading_a_document_again_counts_afresh(ledger, open_document, crash, db, postgres_bench) -> None:
    batch_id, (page,) = await open_document(1)
    await crash(page)
    await crash(page)
    assert await ledger.claim_pages(batch_id, "w", 9, 60) == []
    (reading,) = await ledger.unmerged(batch_id)
    await ledger.record_result(reading, {"fields": []}, 0.9)
    again, _ = await open_document(1, "b.pdf")
    ref = db.row("SELECT last_modified FROM documents WHERE key = 'a.pdf'")["last_modified"]
    (claim,) = await _forced(ledger, again, ref)
    assert claim.page_no == 1
    assert await postgres_bench.registry.crashes_of(page) == 0


async def _forced(ledger, batch_id, last_modified):
    await ledger.add_documents(batch_id, [ObjectRef("forms", "a.pdf", "1", 1000, last_modified)], force=True)
    (document,) = await ledger.claim_documents(batch_id, "opener", 9, 60)
    await ledger.record_opened(document, OpenedDocument("cd" * 32, "application/pdf", 1), force=True)
    claims = await ledger.claim_pages(batch_id, "w", 9, 60)
    return [claim for claim in claims if claim.ref.key == "a.pdf"]


async def test_the_search_for_such_pages_does_not_read_the_queue(ledger, open_document, db) -> None:
    batch_id, _ = await open_document(400)
    await ledger.claim_pages(batch_id, "w", 1, 60)
    plan = db.rows(
        "EXPLAIN SELECT id FROM pages WHERE batch_id = %(batch)s AND server_crashes >= 2"
        " AND status IN ('pending', 'claimed') AND (status = 'pending' OR lease_expires_at <= now())",
        batch=batch_id,
    )
    assert any("pages_suspected" in row["QUERY PLAN"] for row in plan)
