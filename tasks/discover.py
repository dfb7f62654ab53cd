"""Discover: list a source and put its documents into the ledger."""

from __future__ import annotations

from uuid import UUID

from prefect import task
from prefect.cache_policies import NO_CACHE

from docmill.ledger import Added
from docmill.ports import ObjectRef
from storage.objects.sources import parse_source
from tasks.patience import patiently
from tasks.resources import OpenResources

CHUNK = 500


@task(name="discover", cache_policy=NO_CACHE)
async def discover_documents(
    open_resources: OpenResources, batch_id: UUID, source: str, *, limit: int | None, force: bool
) -> Added:
    """List the source and add its documents to the batch.

    Args:
        open_resources: the composition root.
        batch_id: whose work they become.
        source: ``s3://bucket/prefix``, a folder or a file.
        limit: at most so many documents are taken on (new, resumed or forced); unchanged ones do not count.
        force: take on finished ones too.
    """
    total = Added()
    place = parse_source(source)
    async with open_resources() as resources:
        patience = resources.settings.pipeline.transient_patience_seconds

        async def add(refs: list[ObjectRef]) -> Added:
            return await patiently(lambda: resources.ledger.add_documents(batch_id, refs, force=force), patience)

        def room() -> int:
            taken = total.new + total.resumed + total.forced
            return CHUNK if limit is None else min(CHUNK, limit - taken)

        waiting: list[ObjectRef] = []
        async for ref in resources.store_of(place.bucket).list(place.bucket, place.prefix):
            if room() <= 0:
                break
            waiting.append(ref)
            if len(waiting) >= room():
                total = _sum(total, await add(waiting))
                waiting = []
        if waiting:
            total = _sum(total, await add(waiting))
    return total


def _sum(one: Added, other: Added) -> Added:
    return Added(
        one.new + other.new,
        one.resumed + other.resumed,
        one.unchanged + other.unchanged,
        one.forced + other.forced,
    )
