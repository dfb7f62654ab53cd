"""How many pages a second the ledger takes in: claims and records by 1, 2 and 4 workers.

    python benchmarks/ledger_claims.py [DATABASE_URL] [--pages 400] [--rounds 3] [--workers 1 2 4]

Without a URL an embedded Postgres is started in a temporary folder and thrown away. With one, its tables are brought up
to date, and the rows that were made for the measurement are removed at the end. Every worker is a process of its own.
The numbers of workers take turns for some rounds and each keeps its best, so that what else the machine does hits all
of them alike. The last column, a ratio within one run, is what can be compared between machines.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID, uuid4

import psycopg

from docmill.extraction import Block, BlockKind, Extraction, Field, FieldKind
from docmill.geometry import Box
from docmill.ledger import Attempt, BatchSpec, BatchStatus, OpenedDocument
from docmill.ports import ObjectRef
from storage.embedded.postgres import EmbeddedPostgres
from storage.ledger.postgres import PostgresLedger
from storage.migrations import upgrade

PAGES_A_DOCUMENT = 4


def extraction(fields: int) -> Extraction:
    """A page like a busy invoice."""
    box = Box(0.1, 0.2, 0.3, 0.25)
    made = tuple(
        Field(f"items.column_{n}", FieldKind.MONEY, "12.50", Decimal("12.50"), 0.9, box, row=n) for n in range(fields)
    )
    blocks = tuple(Block(BlockKind.TEXT, f"line {n} of the page", box, 0.9) for n in range(40))
    return Extraction("ocr", "benchmark", made, blocks, "\n".join(block.text for block in blocks), 0.9)


async def prepare(url: str, version: str, pages: int) -> UUID:
    """A batch with opened documents."""
    documents = pages // PAGES_A_DOCUMENT
    async with PostgresLedger.connect(url, pool_size=1) as ledger:
        batch = await ledger.start_batch(BatchSpec(f"benchmark:{version}", "benchmark", "ocr", version))
        now = datetime.now(UTC)
        await ledger.add_documents(
            batch.id, [ObjectRef("benchmark", f"{version}/{n:06}", "1", 1, now) for n in range(documents)]
        )
        while claims := await ledger.claim_documents(batch.id, "opener", 64, 600):
            for claim in claims:
                await ledger.record_opened(claim, OpenedDocument(uuid4().hex * 2, "image/tiff", PAGES_A_DOCUMENT))
        return batch.id


def work(url: str, batch_id: UUID, name: str, shard: int, fields: int, ready: object, results: object) -> None:
    """One worker: claim and record until nothing is left; puts (pages, started, ended)."""

    async def drain() -> tuple[int, float, float]:
        page = extraction(fields)
        done = 0
        async with PostgresLedger.connect(url, pool_size=1) as ledger:
            await ledger.remaining(batch_id)
            ready.wait()  # type: ignore[attr-defined]
            started = time.monotonic()
            while claims := await ledger.claim_pages(batch_id, name, shard, 600):
                for claim in claims:
                    now = datetime.now(UTC)
                    await ledger.record_page(claim, Attempt(now, now, "ocr", "none", width=1000, height=1400), page)
                    done += 1
            return done, started, time.monotonic()

    results.put(asyncio.run(drain()))  # type: ignore[attr-defined]


def measure(url: str, batch_id: UUID, workers: int, shard: int, fields: int, pages: int) -> float:
    """Pages a second of so many workers together."""
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(workers), context.Queue()
    processes = [
        context.Process(target=work, args=(url, batch_id, f"worker-{n}", shard, fields, ready, results))
        for n in range(workers)
    ]
    for process in processes:
        process.start()
    found = [results.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    if sum(done for done, _, _ in found) != pages:
        raise SystemExit(f"{found} is not every page exactly once")
    return pages / (max(ended for _, _, ended in found) - min(started for _, started, _ in found))


@contextmanager
def database(url: str | None) -> Iterator[str]:
    """The given database, or an embedded one for the time being."""
    if url is not None:
        yield url
        return
    folder = Path(tempfile.mkdtemp(prefix="docmill-benchmark-"))
    folder.chmod(0o755)
    server = EmbeddedPostgres(folder)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def clean_up(url: str, batches: list[UUID]) -> None:
    """Remove what the measurement made."""
    with psycopg.connect(url) as connection:
        (gone,) = connection.execute(
            "SELECT array_agg(extraction_id) FROM pages WHERE batch_id = ANY(%s)", [batches]
        ).fetchone() or (None,)
        connection.execute("DELETE FROM documents WHERE bucket = 'benchmark'")
        connection.execute("DELETE FROM extractions WHERE id = ANY(%s)", [gone or []])
        connection.execute("DELETE FROM batches WHERE id = ANY(%s)", [batches])


async def close(url: str, batch_id: UUID) -> None:
    """End the batch, so that it is not gone on with."""
    async with PostgresLedger.connect(url, pool_size=1) as ledger:
        await ledger.finish_batch(batch_id, BatchStatus.COMPLETED, {})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="postgresql://…; without it an embedded Postgres")
    parser.add_argument("--pages", type=int, default=400, help="pages for each measurement")
    parser.add_argument("--shard", type=int, default=16, help="pages a claim")
    parser.add_argument("--fields", type=int, default=20, help="fields a page")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    pages = options.pages // PAGES_A_DOCUMENT * PAGES_A_DOCUMENT
    with database(options.url) as url:
        asyncio.run(upgrade(url))
        plain = url.replace("postgresql+psycopg://", "postgresql://")
        batches: list[UUID] = []
        try:
            best: dict[int, float] = {}
            print(f"{pages} pages, {options.fields} fields a page, shards of {options.shard}")
            for _, workers in itertools.product(range(options.rounds), options.workers):
                batch_id = asyncio.run(prepare(url, uuid4().hex, pages))
                batches.append(batch_id)
                rate = measure(url, batch_id, workers, options.shard, options.fields, pages)
                asyncio.run(close(url, batch_id))
                best[workers] = max(rate, best.get(workers, 0.0))
            for workers, rate in best.items():
                ratio = rate / best[options.workers[0]]
                print(f"{workers} workers: {rate:6.0f} pages/s claimed and recorded, {ratio:4.2f} x the first")
        finally:
            clean_up(plain, batches)


if __name__ == "__main__":
    main()
