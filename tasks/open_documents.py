"""Open: fetch a document, find out what it is and how many pages it has."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from docmill.failures import DocmillError, failure_of
from docmill.ledger import DocumentClaim
from docmill.rendering import open_document
from docmill.retrying import Step, decide
from tasks.claims import HeldClaims, holding
from tasks.orders import DrainOrder
from tasks.patience import patiently
from tasks.resources import Resources

logger = logging.getLogger(__name__)


async def open_documents(resources: Resources, order: DrainOrder, claims: Sequence[DocumentClaim]) -> None:
    """Open the claimed documents one after the other and record what was found.

    A document that cannot be opened becomes a failure row; the others go on.
    """
    async with holding(resources.ledger, claims, resources.settings.pipeline.lease_seconds) as held:
        for claim in claims:
            if not held.is_lost(claim):
                await _open_one(resources, order, claim, held)


async def _open_one(resources: Resources, order: DrainOrder, claim: DocumentClaim, held: HeldClaims) -> None:
    settings = resources.settings.pipeline
    began = time.monotonic()
    tries = 0
    while True:
        try:
            await _try(resources, order, claim)
            break
        except Exception as error:
            failure = failure_of(error)
            tries += 1
            step = decide(
                failure, attempt_no=tries, max_attempts=settings.max_attempts, tries=tries,
                waited_seconds=time.monotonic() - began, patience_seconds=settings.transient_patience_seconds,
            )  # fmt: skip
            if not isinstance(error, DocmillError):
                logger.exception("document %s: unexpected error", claim.document_id)
            if failure.code == "lease_lost":
                break
            if step.step is Step.GIVE_UP:
                logger.warning("document %s cannot be opened: %s", claim.document_id, failure.code)
                try:
                    await patiently(
                        lambda failure=failure: resources.ledger.record_unopened(claim, failure),  # type: ignore[misc]
                        settings.transient_patience_seconds,
                    )
                except DocmillError as lost:
                    if lost.code != "lease_lost":
                        raise
                break
            await asyncio.sleep(step.wait_seconds)
    held.done(claim)


async def _try(resources: Resources, order: DrainOrder, claim: DocumentClaim) -> None:
    settings = resources.settings.pipeline
    location = f"{claim.ref.bucket}/{claim.ref.key}"
    passwords = settings.passwords_for(location if location.startswith("/") else f"s3://{location}")
    async with resources.files.hold(claim.ref, resources.store_of(claim.ref.bucket)) as path:
        opened = await resources.pool.run(
            open_document, path, resources.limits, passwords, deadline_seconds=settings.page_deadline_seconds
        )
    await resources.ledger.record_opened(claim, opened, force=order.force)
