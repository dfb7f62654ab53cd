"""Drain: claim shards of a batch and read them until nothing is left."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import secrets
from datetime import UTC, datetime

from prefect import task
from prefect.cache_policies import NO_CACHE

from docmill.ledger import PageClaim, PageOutcome, Remaining
from tasks.merge_documents import merge_document
from tasks.open_documents import open_documents
from tasks.orders import DrainOrder
from tasks.patience import patiently
from tasks.read_pages import read_pages
from tasks.resources import OpenResources, Resources

logger = logging.getLogger(__name__)
OPEN_AT_ONCE = 4
LONGEST_IDLE_SECONDS = 2.0


@task(name="drain", task_run_name="drain-{order.slot}", cache_policy=NO_CACHE)
async def drain(open_resources: OpenResources, order: DrainOrder) -> int:
    """Work on the batch until it is through: open documents, read pages, merge documents.

    Returns:
        How many page outcomes this slot recorded.
    """
    holder = f"{platform.node()}:{os.getpid()}:{order.slot}:{secrets.token_hex(4)}"
    recorded = 0
    async with open_resources() as resources:
        while True:
            done = await _one_round(resources, order, holder)
            if done is not None:
                recorded += done
                continue
            left = await patiently(
                lambda: resources.ledger.remaining(order.batch_id),
                resources.settings.pipeline.transient_patience_seconds,
            )
            if left.nothing:
                break
            await asyncio.sleep(_idle_seconds(left))
        await _merge_left(resources, order)
    return recorded


async def _one_round(resources: Resources, order: DrainOrder, holder: str) -> int | None:
    """Claim and work on one shard; None where there was nothing to claim."""
    settings, ledger = resources.settings.pipeline, resources.ledger
    patience = settings.transient_patience_seconds
    documents = await patiently(
        lambda: ledger.claim_documents(order.batch_id, holder, OPEN_AT_ONCE, settings.lease_seconds), patience
    )
    if documents:
        await open_documents(resources, order, documents)
        return 0
    pages = await patiently(
        lambda: ledger.claim_pages(
            order.batch_id, holder, settings.shard_pages, settings.lease_seconds, max_crashes=settings.max_crashes
        ),
        patience,
    )
    if not pages:
        return None
    recorded = 0

    async def finished(claim: PageClaim, outcome: PageOutcome) -> None:
        nonlocal recorded
        recorded += 0 if outcome.will_retry else 1
        if outcome.document_finished:
            await merge_document(resources, claim.reading_id, order.document_type)

    await read_pages(resources, order, pages, finished)
    return recorded


async def _merge_left(resources: Resources, order: DrainOrder) -> None:
    """Merge what a crash between the last page and the merge left behind."""
    patience = resources.settings.pipeline.transient_patience_seconds
    for reading_id in await patiently(lambda: resources.ledger.unmerged(order.batch_id), patience):
        await merge_document(resources, reading_id, order.document_type)


def _idle_seconds(left: Remaining) -> float:
    """Until there may be something to claim: others are at work, or a lease of a dead worker is to run out."""
    if left.documents_pending or left.pages_pending or left.next_expiry is None:
        return 0.2
    return min(LONGEST_IDLE_SECONDS, max(0.2, (left.next_expiry - datetime.now(UTC)).total_seconds()))
