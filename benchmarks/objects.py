"""Objects put and fetched per second at 1, 4 and 8 at a time, on the embedded S3 server and in a folder.

    python benchmarks/objects.py [--objects 400] [--bytes 100000]

The figures of a machine matter little; the ratios to one at a time and between the stores do.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from docmill.ports import ObjectStore
from storage.embedded.seaweed import EmbeddedObjectStore
from storage.objects.folder import FolderStore
from storage.objects.s3 import S3Store

AT_ONCE = (1, 4, 8)


async def rate(count: int, at_once: int, work: Callable[[int], Awaitable[object]]) -> float:
    """Calls per second with so many under way."""
    numbers = itertools.count()

    async def drain() -> None:
        while (n := next(numbers)) < count:
            await work(n)

    began = time.perf_counter()
    await asyncio.gather(*(drain() for _ in range(at_once)))
    return count / (time.perf_counter() - began)


async def measure(name: str, store: ObjectStore, bucket: str, count: int, size: int, folder: Path) -> None:
    """Print one line for each number at a time."""
    data = os.urandom(size)
    first: tuple[float, float] | None = None
    for at_once in AT_ONCE:
        prefix = f"{at_once}"

        async def put(n: int, prefix: str = prefix) -> None:
            await store.put(bucket, f"{prefix}/{n}", data)

        puts = await rate(count, at_once, put)
        refs = [ref async for ref in store.list(bucket, f"{prefix}/")]

        async def fetch(n: int, refs: list = refs) -> None:
            await store.fetch(refs[n], folder / f"{n}")

        fetches = await rate(count, at_once, fetch)
        first = first or (puts, fetches)
        print(
            f"{name:8} {at_once:2} at once: put {puts:7.0f}/s ({puts / first[0]:.2f}x)   "
            f"fetch {fetches:7.0f}/s ({fetches / first[1]:.2f}x)"
        )


async def main() -> None:
    """Measure both stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=400)
    parser.add_argument("--bytes", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = EmbeddedObjectStore(folder / "server")
        access = await asyncio.to_thread(server.start)
        keys = {"access_key": access.access_key, "secret_key": access.secret_key}
        s3 = S3Store(access.url, region=access.region, concurrency=max(AT_ONCE), **keys)
        try:
            await measure("s3", s3, "benchmark", options.objects, options.bytes, folder)
            bucket = str(folder / "bucket")
            await measure("folder", FolderStore(), bucket, options.objects, options.bytes, folder)
        finally:
            await s3.close()
            await asyncio.to_thread(server.stop)


if __name__ == "__main__":
    asyncio.run(main())
