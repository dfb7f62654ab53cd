"""Kill the worker of a batch of 200 pages twice: nothing may be lost, nothing read twice.

    python benchmarks/killed_worker.py [PAGES]

Uses the local stack (``DOCMILL_DATA_DIR`` chooses which). Makes PAGES different receipts, puts them into the embedded
object store, starts ``docmill ingest`` through the worker, kills the worker and everything below it with SIGKILL at a
third and at two thirds of the pages, runs the same command again, and counts rows.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg

from docmill.settings import Settings, load_settings
from docmill.synthesis.__main__ import write_set
from docmill.synthesis.documents import Kind
from docmill.synthesis.files import Format
from flows.bringing_up import bring_up
from flows.endpoints import database_url
from flows.local_prefect import LocalPrefect
from flows.resources import s3_store

COUNTS = """
SELECT count(*) FILTER (WHERE p.status = 'done'), count(*) FILTER (WHERE p.status = 'failed'), count(*)
FROM pages p JOIN batches b ON b.id = p.batch_id WHERE b.source = %s
"""
TWICE = """
SELECT count(*) FROM (
    SELECT a.page_id FROM attempts a JOIN batches b ON b.id = a.batch_id
    WHERE b.source = %s AND a.outcome = 'done' GROUP BY a.page_id HAVING count(*) > 1
) twice
"""


async def _upload(settings: Settings, files: list[Path], prefix: str) -> None:
    store = s3_store(settings)
    for path in files:
        await store.put(settings.objects.bucket, f"{prefix}/{path.name}", path.read_bytes())
    await store.close()


def _counts(settings: Settings, source: str) -> tuple[int, int, int]:
    with psycopg.connect(database_url(settings)) as connection:
        row = connection.execute(COUNTS, [source]).fetchone()
    return row or (0, 0, 0)


def _kill_worker(settings: Settings) -> None:
    worker = LocalPrefect(settings.data_dir).processes().worker
    if worker is None:
        raise SystemExit("there is no worker to kill")
    tree = psutil.Process(worker.pid)
    for process in [tree, *tree.children(recursive=True)]:
        os.kill(process.pid, signal.SIGKILL)


def main() -> None:
    """Run it and print what the rows say."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    settings = load_settings()
    bring_up(settings)
    prefix = f"killed-{secrets.token_hex(3)}"
    source = f"s3://{settings.objects.bucket}/{prefix}/"
    with tempfile.TemporaryDirectory() as folder:
        seed = secrets.randbelow(900_000)
        write_set(Path(folder), kinds=[Kind.RECEIPT], count=pages, seed=seed, form=Format.JPEG)
        asyncio.run(_upload(settings, sorted((Path(folder) / "images").iterdir()), prefix))
    command = [sys.executable, "-m", "console", "ingest", source, "--type", "receipt"]
    began = time.monotonic()
    for share in (1 / 3, 2 / 3):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            while sum(_counts(settings, source)[:2]) < share * pages:
                time.sleep(0.3)
            _kill_worker(settings)
            run.kill()
        print(f"killed after {_counts(settings, source)[0]} of {pages} pages, {time.monotonic() - began:.0f} s")
    ended = subprocess.run(command, capture_output=True, text=True)
    done, failed, known = _counts(settings, source)
    with psycopg.connect(database_url(settings)) as connection:
        [twice] = connection.execute(TWICE, [source]).fetchone() or [None]
        [batches] = connection.execute("SELECT count(*) FROM batches WHERE source = %s", [source]).fetchone() or [None]
    print(ended.stdout.strip())
    print(f"{done} done, {failed} failed of {known} pages in {batches} batch; {twice} read twice after success; "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    if (done + failed, twice) != (pages, 0) or known != pages:
        raise SystemExit("pages were lost or read twice")


if __name__ == "__main__":
    main()
