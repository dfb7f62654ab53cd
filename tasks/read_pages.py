"""Read: render a page, read its text, extract its fields, record the outcome.

The steps are joined by bounded queues, so that drawing, the engine and the writes overlap while memory stays flat.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from docmill.extraction import Extraction
from docmill.failures import DocmillError, Failure, LeaseLost, failure_of
from docmill.ledger import Attempt, PageClaim, PageOutcome
from docmill.ports import PageExtractor, PageInput
from docmill.rendering import RenderLimits
from docmill.retrying import Step, decide
from serving.page_reading import PageView, ViewOptions, view_page
from tasks.claims import HeldClaims, holding
from tasks.orders import DrainOrder
from tasks.patience import patiently
from tasks.resources import Resources

logger = logging.getLogger(__name__)
QUEUE_SIZE = 2
SMALLEST_PIXELS = 1_000_000


@dataclass(slots=True)
class Journey:
    """One attempt at one page, on its way through the steps; each step adds."""

    claim: PageClaim
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    view: PageView | None = None
    extraction: Extraction | None = None
    failure: Failure | None = None
    give_up: bool = False


async def read_pages(
    resources: Resources,
    order: DrainOrder,
    claims: Sequence[PageClaim],
    finished: Callable[[PageClaim, PageOutcome], Awaitable[None]],
) -> None:
    """Read a shard of claimed pages and record every outcome.

    Args:
        resources: the world.
        order: which document type and engine.
        claims: the shard.
        finished: called after each recorded outcome.
    """
    extractor = resources.extractor(order.engine)
    viewed: asyncio.Queue[Journey | None] = asyncio.Queue(QUEUE_SIZE)
    read: asyncio.Queue[Journey | None] = asyncio.Queue(QUEUE_SIZE)
    async with holding(resources.ledger, claims, resources.settings.pipeline.lease_seconds) as held:

        async def view() -> None:
            for claim in claims:
                if not held.is_lost(claim):
                    journey = Journey(claim)
                    await _step(resources, journey, "view", lambda j=journey: _view(resources, extractor, j))  # type: ignore[misc]
                    await viewed.put(journey)
            await viewed.put(None)

        async def infer() -> None:
            while (journey := await viewed.get()) is not None:
                if journey.failure is None:
                    await _step(resources, journey, "infer", lambda j=journey: _infer(resources, order, extractor, j))  # type: ignore[misc]
                await read.put(journey)
            await read.put(None)

        async def record() -> None:
            while (journey := await read.get()) is not None:
                outcome = await _record(resources, extractor, journey, held)
                if outcome is not None:
                    await finished(journey.claim, outcome)

        async with asyncio.TaskGroup() as group:
            for step in (view, infer, record):
                group.create_task(step())


async def _step(resources: Resources, journey: Journey, name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run one step; transient errors are waited out here, anything else is kept on the journey."""
    settings = resources.settings.pipeline
    began = time.monotonic()
    tries = 0
    while True:
        try:
            await work()
            break
        except Exception as error:
            failure = failure_of(error)
            tries += 1
            decision = decide(
                failure, attempt_no=journey.claim.attempt_no, max_attempts=settings.max_attempts, tries=tries,
                waited_seconds=time.monotonic() - began, patience_seconds=settings.transient_patience_seconds,
            )  # fmt: skip
            if not isinstance(error, DocmillError):
                logger.exception("page %s: unexpected error in step %s", journey.claim.page_id, name)
            if decision.step is Step.WAIT:
                logger.warning("page %s: %s, trying again", journey.claim.page_id, failure.code)
                await asyncio.sleep(decision.wait_seconds)
                continue
            journey.failure = failure
            journey.give_up = decision.step is Step.GIVE_UP
            break
    journey.seconds[name] = time.monotonic() - began


async def _view(resources: Resources, extractor: PageExtractor, journey: Journey) -> None:
    claim, settings = journey.claim, resources.settings.pipeline
    location = f"{claim.ref.bucket}/{claim.ref.key}"
    passwords = settings.passwords_for(location if location.startswith("/") else f"s3://{location}")
    options = ViewOptions(
        limits=_limits_for(resources.limits, claim.attempt_no),
        passwords=passwords,
        ocr=resources.ocr_options,
        keep_image=extractor.needs_image,
    )
    async with resources.files.hold(claim.ref, resources.store_of(claim.ref.bucket)) as path:
        journey.view = await resources.pool.run(
            view_page, path, claim.media_type, claim.page_no, options, deadline_seconds=settings.page_deadline_seconds
        )
    journey.seconds.update(journey.view.seconds)


def _limits_for(limits: RenderLimits, attempt_no: int) -> RenderLimits:
    """Each further attempt asks less of a page that was too much for its process."""
    return replace(limits, max_pixels=max(SMALLEST_PIXELS, limits.max_pixels >> (attempt_no - 1)))


async def _infer(resources: Resources, order: DrainOrder, extractor: PageExtractor, journey: Journey) -> None:
    view = journey.view
    if view is None:
        raise RuntimeError("a page is viewed before it is read")
    page = PageInput(view.image, view.text, journey.claim.page_no, journey.claim.page_count)
    journey.extraction = await extractor.extract(page, resources.document_type(order.document_type))


async def _record(
    resources: Resources, extractor: PageExtractor, journey: Journey, held: HeldClaims
) -> PageOutcome | None:
    """Write the outcome; None where the page was lost to another worker, who records it."""
    claim, view = journey.claim, journey.view
    journey.seconds["total"] = time.monotonic() - journey.began
    attempt = Attempt(
        started_at=journey.started_at,
        ended_at=datetime.now(UTC),
        engine=extractor.engine,
        model=extractor.fingerprint,
        seconds={name: round(seconds, 4) for name, seconds in journey.seconds.items()},
        details={"notes": list(view.notes)} if view and view.notes else {},
        width=view.width if view else 0,
        height=view.height if view else 0,
        dpi=view.dpi if view else None,
        turned=view.text.turned if view else 0,
    )
    patience = resources.settings.pipeline.transient_patience_seconds
    ledger, extraction, failure = resources.ledger, journey.extraction, journey.failure
    try:
        if extraction is not None:
            outcome = await patiently(lambda: ledger.record_page(claim, attempt, extraction), patience)
        elif failure is not None:
            outcome = await patiently(
                lambda: ledger.record_page_failure(claim, attempt, failure, retry=not journey.give_up), patience
            )
        else:
            raise RuntimeError("a page ends with an extraction or a failure")
    except LeaseLost:
        logger.warning("page %s was taken over by another worker", claim.page_id)
        held.lose({claim.page_id})
        return None
    held.done(claim)
    return outcome
