"""A worker that is killed -9 in the middle: its pages are read by another, and what it says later is refused."""

import asyncio
import pickle
import signal
import sys

import pytest

from docmill.failures import LeaseLost

WORKER = """
import asyncio, pickle, sys
from uuid import UUID
from storage.ledger.postgres import PostgresLedger

async def main():
    async with PostgresLedger.connect(sys.argv[1], pool_size=1) as ledger:
        claims = await ledger.claim_pages(UUID(sys.argv[2]), "doomed", 4, 0.5)
        sys.stdout.buffer.write(pickle.dumps(claims).hex().encode() + b"\\n")
        sys.stdout.flush()
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_killed_holder_loses_its_pages(ledger, samples, db, url) -> None:
    batch_id = await samples.batch(ledger, samples.refs(2))
    await samples.open_all(ledger, batch_id, pages=5)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, url, str(batch_id), stdout=asyncio.subprocess.PIPE
    )
    try:
        line = await process.stdout.readline()
    finally:
        process.kill()
        await process.wait()
    assert process.returncode == -signal.SIGKILL
    dead = pickle.loads(bytes.fromhex(line.decode().strip()))
    assert len(dead) == 4

    # The lease runs out by the database's clock, and by nothing else.
    db.execute("SELECT pg_sleep(greatest(0, extract(epoch FROM max(lease_expires_at) - clock_timestamp()))) FROM pages")
    claims = await ledger.claim_pages(batch_id, "alive", 99, 60)
    assert len(claims) == 10
    with pytest.raises(LeaseLost):
        await ledger.record_page(dead[0], samples.attempt(), samples.extraction())
    for claim in claims:
        await ledger.record_page(claim, samples.attempt(), samples.extraction())
    for late in dead:
        with pytest.raises(LeaseLost):
            await ledger.record_page(late, samples.attempt(), samples.extraction())
    assert (await ledger.remaining(batch_id)).nothing
    assert db.rows("SELECT holder, count(*) AS pages FROM v_attempts GROUP BY holder") == [
        {"holder": "alive", "pages": 10}
    ]
    assert db.value("SELECT sum(crashes) FROM pages") == 4
