"""The ledger in Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self
from uuid import UUID

from docmill.extraction import Extraction
from docmill.failures import Failure
from docmill.ledger import (
    Added,
    Attempt,
    Batch,
    BatchCounts,
    BatchSpec,
    BatchStatus,
    DocumentClaim,
    FinishedPage,
    OpenedDocument,
    PageClaim,
    PageOutcome,
    Remaining,
)
from docmill.ports import ObjectRef
from storage.ledger import batches, claims, intake, leases, openings, records, reopening, results
from storage.ledger.database import Database


class PostgresLedger:
    """:class:`docmill.ledger.Ledger` over Postgres. Each method is one transaction, unless it says otherwise.

    Every method raises DatabaseUnavailable where Postgres cannot be reached, AccessDenied (category ``database``) where
    it refuses the login, and ConfigurationError where the tables are missing or old. After a broken connection a
    ``record_*`` may simply be called again: what is recorded already is recognised and answered the same.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, *, pool_size: int = 4, prepared_statements: bool = True) -> AsyncIterator[Self]:
        """A ledger with a pool of connections, closed at the end. Connections are made when they are needed.

        Args:
            url: ``postgresql://``, ``postgres://`` or ``postgresql+psycopg://``.
            pool_size: the most connections at a time.
            prepared_statements: False behind a pgbouncer older than 1.21 in transaction mode.
        """
        async with Database(url, pool_size=pool_size, prepared_statements=prepared_statements) as database:
            yield cls(database)

    async def start_batch(self, spec: BatchSpec) -> Batch:
        """Begin a batch, or go on with the running one of the same source and extractor_version."""
        return await self._database.run(lambda c: batches.start(c, spec))

    async def add_documents(self, batch_id: UUID, refs: Sequence[ObjectRef], *, force: bool = False) -> Added:
        """Upsert documents and readings, in one transaction for each 10,000 objects."""
        total = Added()
        for chunk in intake.chunks(refs):
            added = await self._database.run(partial(intake.add, batch_id=batch_id, refs=chunk, force=force))
            total = Added(
                total.new + added.new,
                total.resumed + added.resumed,
                total.unchanged + added.unchanged,
                total.forced + added.forced,
            )
        return total

    async def claim_documents(
        self, batch_id: UUID, holder: str, limit: int, lease_seconds: float, *, max_crashes: int = 3
    ) -> list[DocumentClaim]:
        """Claim readings that are to be opened.

        One whose lease ran out ``max_crashes`` times becomes a ``poison_page`` failure of the document instead: what
        kills the worker that opens it must not kill them for ever.
        """
        return await self._database.run(
            lambda c: claims.claim_documents(c, batch_id, holder, limit, lease_seconds, max_crashes)
        )

    async def record_opened(self, claim: DocumentClaim, opened: OpenedDocument, *, force: bool = False) -> PageOutcome:
        """Record what opening found and make the page rows."""
        return await self._database.run(lambda c: openings.record_opened(c, claim, opened, force=force))

    async def record_unopened(self, claim: DocumentClaim, failure: Failure) -> None:
        """Record that the document cannot be opened."""
        await self._database.run(lambda c: openings.record_unopened(c, claim, failure))

    async def claim_pages(
        self, batch_id: UUID, holder: str, limit: int, lease_seconds: float, *, max_crashes: int = 3
    ) -> list[PageClaim]:
        """Claim a shard. Poisoned pages are set aside before, each in a transaction of its own."""
        for page_id, reading_id in await self._database.run(lambda c: claims.poisoned(c, batch_id, max_crashes)):
            await self._database.run(
                partial(claims.set_aside, page_id=page_id, reading_id=reading_id, max_crashes=max_crashes)
            )
        return await self._database.run(
            lambda c: claims.claim_pages(c, batch_id, holder, limit, lease_seconds, max_crashes)
        )

    async def renew(self, claims: Sequence[DocumentClaim | PageClaim], lease_seconds: float) -> set[UUID]:
        """Extend the leases; the ids of those that are lost."""
        if not claims:
            return set()
        return await self._database.run(lambda c: leases.renew(c, claims, lease_seconds))

    async def release(self, claims: Sequence[DocumentClaim | PageClaim]) -> None:
        """Give claims back unspent."""
        if claims:
            await self._database.run(lambda c: leases.release(c, claims))

    async def record_page(self, claim: PageClaim, attempt: Attempt, extraction: Extraction) -> PageOutcome:
        """Record a page that was read."""
        return await self._database.run(lambda c: records.record_page(c, claim, attempt, extraction))

    async def record_page_failure(
        self, claim: PageClaim, attempt: Attempt, failure: Failure, *, retry: bool
    ) -> PageOutcome:
        """Record a failed attempt."""
        return await self._database.run(lambda c: records.record_page_failure(c, claim, attempt, failure, retry=retry))

    async def remaining(self, batch_id: UUID) -> Remaining:
        """What the batch still has to do."""
        return await self._database.run(lambda c: batches.remaining(c, batch_id))

    async def unmerged(self, batch_id: UUID) -> list[UUID]:
        """Readings that only wait to be merged."""
        return await self._database.run(lambda c: results.unmerged(c, batch_id))

    async def finished_pages(self, reading_id: UUID) -> list[FinishedPage]:
        """The reading's finished pages in order."""
        return await self._database.run(lambda c: results.finished_pages(c, reading_id))

    async def record_result(self, reading_id: UUID, result: dict[str, Any], confidence: float) -> None:
        """Store the document's merged result and its final status."""
        await self._database.run(lambda c: results.record_result(c, reading_id, result, confidence))

    async def counts(self, batch_id: UUID) -> BatchCounts:
        """How the batch stands."""
        return await self._database.run(lambda c: batches.counts(c, batch_id))

    async def finish_batch(self, batch_id: UUID, status: BatchStatus, summary: dict[str, Any]) -> None:
        """Close the batch, once."""
        await self._database.run(lambda c: batches.finish(c, batch_id, status, summary))

    async def reopen_failed(
        self,
        batch_id: UUID,
        *,
        source_batch: UUID | None = None,
        codes: Sequence[str] = (),
        document_key: str | None = None,
        limit: int | None = None,
    ) -> int:
        """Put failed pages and unopened documents back to work."""
        return await self._database.run(
            lambda c: reopening.reopen(
                c, batch_id, source_batch=source_batch, codes=codes, document_key=document_key, limit=limit
            )
        )
