"""The ledger: what is to be read, who reads it now, and what became of it. Postgres is the only truth of it.

A *reading* is one document under one extractor_version; it has one row of work per page. Workers claim readings to open
and pages to read; a claim is a lease with an expiry and a fence number, and only the holder of the newest fence can
record. Records are written in one transaction: there is no success without a row and no failure without a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from docmill.extraction import Extraction
from docmill.failures import Failure
from docmill.ports import ObjectRef


class ReadingStatus(StrEnum):
    """Where a document stands under one extractor_version."""

    PENDING = "pending"  # not opened yet
    OPENED = "opened"  # pages known, not all finished
    DONE = "done"  # every page read
    PARTIAL = "partial"  # finished, some pages failed
    FAILED = "failed"  # could not be opened, or every page failed


class PageStatus(StrEnum):
    """Where a page stands. ``claimed`` is ``pending`` with a live lease."""

    PENDING = "pending"
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"


class BatchStatus(StrEnum):
    """Where a batch stands. An interrupted batch is still ``running`` and can go on."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"  # finished, past its failure rate
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """What a batch covers and how.

    Attributes:
        source: as the user wrote it (``s3://bucket/prefix``, a folder or a file), credentials never in it.
        parameters: flat, JSON-able, for the record.
    """

    source: str
    document_type: str
    engine: str
    extractor_version: str
    parameters: dict[str, Any] = field(default_factory=dict)
    flow_run_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it stands."""

    id: UUID
    spec: BatchSpec
    status: BatchStatus
    created_at: datetime
    finished_at: datetime | None
    joined: bool = False  # start_batch found it unfinished and goes on with it
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a listing: each object is in exactly one of the counts.

    ``new``: first seen, or seen but never read under this extractor_version. ``resumed``: begun and unfinished.
    ``unchanged``: finished already (done, partial or failed): not read again. ``forced``: finished, and read again.
    """

    new: int = 0
    resumed: int = 0
    unchanged: int = 0
    forced: int = 0


@dataclass(frozen=True, slots=True)
class DocumentClaim:
    """The right to open one document until ``expires_at``."""

    reading_id: UUID
    document_id: UUID
    ref: ObjectRef
    fence: int
    holder: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class OpenedDocument:
    """What opening a document found. ``sha256`` in hex; ``media_type`` by content; one page or more."""

    sha256: str
    media_type: str
    page_count: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageClaim:
    """The right to read one page until ``expires_at``. ``attempt_no`` is 1 for the first try."""

    page_id: UUID
    reading_id: UUID
    document_id: UUID
    ref: ObjectRef
    sha256: str
    media_type: str
    page_no: int
    page_count: int
    attempt_no: int
    fence: int
    holder: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one page, as it is recorded.

    Attributes:
        seconds: by step: ``render``, ``ocr``, ``infer``, ``total``.
        details: JSON-able: sampling, tokens, finish_reason, raw answer or error body, where the engine has them.
        width, height: pixels of the picture as a viewer shows it; 0 where it was not drawn.
        turned: degrees clockwise by which it was turned to be read.
    """

    started_at: datetime
    ended_at: datetime
    engine: str
    model: str
    seconds: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    width: int = 0
    height: int = 0
    dpi: float | None = None
    turned: int = 0


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """What recording a page changed.

    ``document_finished``: that was the last page of its reading, whose result is to be merged now.
    ``will_retry``: a failed attempt that goes back to the queue.
    """

    document_finished: bool
    will_retry: bool = False


@dataclass(frozen=True, slots=True)
class Remaining:
    """What a batch still has to do.

    ``next_expiry``: when the first of the leases that others hold runs out; None where nobody holds one.
    """

    documents_pending: int
    documents_claimed: int
    pages_pending: int
    pages_claimed: int
    next_expiry: datetime | None

    @property
    def nothing(self) -> bool:
        """Whether the batch is through."""
        return not (self.documents_pending or self.documents_claimed or self.pages_pending or self.pages_claimed)


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """How a batch stands, counted from the rows (not from messages)."""

    documents_total: int = 0
    documents_done: int = 0
    documents_partial: int = 0
    documents_failed: int = 0
    documents_unopened: int = 0  # those of documents_failed that have no pages
    documents_unchanged: int = 0
    pages_total: int = 0
    pages_done: int = 0
    pages_failed: int = 0
    fields: int = 0
    fields_to_review: int = 0
    failures_by_code: dict[str, int] = field(default_factory=dict)

    @property
    def pages_finished(self) -> int:
        """Done and failed."""
        return self.pages_done + self.pages_failed

    @property
    def failure_rate(self) -> float:
        """Failed pages and documents that could not be opened, as a share of all outcomes, 0 to 1."""
        outcomes = self.pages_finished + self.documents_unopened
        return (self.pages_failed + self.documents_unopened) / outcomes if outcomes else 0.0


@dataclass(frozen=True, slots=True)
class FinishedPage:
    """A finished page of a reading, for merging: its extraction, or the code of its failure."""

    page_no: int
    extraction: Extraction | None
    failure_code: str | None


class Ledger(Protocol):
    """The ledger as the steps of the pipeline use it.

    Every method raises DatabaseUnavailable (transient) where Postgres cannot be reached. ``record_*`` raise LeaseLost
    where the claim's fence is no longer the newest: nothing is written then.
    """

    async def start_batch(self, spec: BatchSpec) -> Batch:
        """Begin a batch, or go on with the unfinished one of the same source and extractor_version (``joined``)."""
        ...

    async def add_documents(self, batch_id: UUID, refs: Sequence[ObjectRef], *, force: bool = False) -> Added:
        """Upsert documents (unique on bucket, key, etag) and their readings under the batch's extractor_version.

        New and unfinished readings (and with ``force`` finished ones, reset to pending) become this batch's work.
        """
        ...

    async def claim_documents(
        self, batch_id: UUID, holder: str, limit: int, lease_seconds: float, *, max_crashes: int = 3
    ) -> list[DocumentClaim]:
        """Claim up to ``limit`` readings of the batch that are to be opened (SKIP LOCKED; an expired lease is free).

        One whose lease expired unreleased ``max_crashes`` times becomes a ``poison_page`` failure of the document.
        """
        ...

    async def record_opened(self, claim: DocumentClaim, opened: OpenedDocument, *, force: bool = False) -> PageOutcome:
        """Record what opening found and make the page rows.

        A page that was read already under the same (sha256, page_no, extractor_version), from another key with the same
        bytes, is done at once with that extraction, unless ``force``.
        """
        ...

    async def record_unopened(self, claim: DocumentClaim, failure: Failure) -> None:
        """Record that the document cannot be opened: its failure row, status failed."""
        ...

    async def claim_pages(
        self, batch_id: UUID, holder: str, limit: int, lease_seconds: float, *, max_crashes: int = 3
    ) -> list[PageClaim]:
        """Claim a shard: up to ``limit`` pages, those of one document together, oldest first.

        A page whose lease expired unreleased ``max_crashes`` times, or that was in flight at two restarts of model
        servers, becomes a ``poison_page`` failure instead.
        """
        ...

    async def renew(self, claims: Sequence[DocumentClaim | PageClaim], lease_seconds: float) -> set[UUID]:
        """Extend the leases; returns the ids (page_id or reading_id) of those that are lost."""
        ...

    async def release(self, claims: Sequence[DocumentClaim | PageClaim]) -> None:
        """Give claims back unspent (cancellation, shutdown): no attempt, no crash is counted."""
        ...

    async def record_page(self, claim: PageClaim, attempt: Attempt, extraction: Extraction) -> PageOutcome:
        """Success, in one transaction: attempt, extraction, fields, page status; closes the page's failures."""
        ...

    async def record_page_failure(
        self, claim: PageClaim, attempt: Attempt, failure: Failure, *, retry: bool
    ) -> PageOutcome:
        """A failed attempt, in one transaction: its row, the page pending again (``retry``) or failed with its row."""
        ...

    async def remaining(self, batch_id: UUID) -> Remaining:
        """What the batch still has to do."""
        ...

    async def unmerged(self, batch_id: UUID) -> list[UUID]:
        """Readings of the batch whose pages are all finished and whose result is not merged."""
        ...

    async def finished_pages(self, reading_id: UUID) -> list[FinishedPage]:
        """The reading's pages in order, for merging."""
        ...

    async def record_result(self, reading_id: UUID, result: dict[str, Any], confidence: float) -> None:
        """Store the document's merged result and its final status (done, partial, failed)."""
        ...

    async def counts(self, batch_id: UUID) -> BatchCounts:
        """How the batch stands."""
        ...

    async def finish_batch(self, batch_id: UUID, status: BatchStatus, summary: dict[str, Any]) -> None:
        """Close the batch; a second close of the same batch changes nothing."""
        ...

    async def reopen_failed(
        self,
        batch_id: UUID,
        *,
        source_batch: UUID | None = None,
        codes: Sequence[str] = (),
        document_key: str | None = None,
        limit: int | None = None,
    ) -> int:
        """Put failed pages and unopened documents back to work, as this batch's, with a fresh count of attempts.

        Only those of the batch's extractor_version that match every filter given. Returns how many were reopened
        (pages, and documents that could not be opened); their failure rows stay open until the outcome is known.
        """
        ...
