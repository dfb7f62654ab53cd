"""One migrated template database a session, one clone of it a test."""

import asyncio
import dataclasses
import hashlib
import itertools
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from docmill.extraction import Block, BlockKind, Extraction, Field, FieldKind, FieldValue
from docmill.failures import DocmillError, Failure, UnreadablePage, failure_of
from docmill.geometry import Box
from docmill.ledger import Attempt, BatchSpec, OpenedDocument, PageClaim
from docmill.ports import ObjectRef
from storage.embedded.postgres import EmbeddedPostgres
from storage.ledger.postgres import PostgresLedger
from storage.migrations import upgrade

_numbers = itertools.count()


def _execute(server: EmbeddedPostgres, statement: str, *names: str) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in names)))


@pytest.fixture(scope="session")
def template(embedded_postgres: EmbeddedPostgres) -> str:
    # The server lives as long as the tests: nothing on it has to survive a power cut.
    _execute(embedded_postgres, "ALTER SYSTEM SET fsync = off")
    _execute(embedded_postgres, "SELECT pg_reload_conf()")
    asyncio.run(upgrade(embedded_postgres.create_database("ledger_template")))
    return "ledger_template"


@pytest.fixture
def empty_url(embedded_postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    name = f"empty_{next(_numbers)}"
    yield embedded_postgres.create_database(name)
    _execute(embedded_postgres, "DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def url(embedded_postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """A database of the test's own."""
    name = f"ledger_{next(_numbers)}"
    _execute(embedded_postgres, "CREATE DATABASE {} TEMPLATE {}", name, template)
    yield embedded_postgres.url(name)
    _execute(embedded_postgres, "DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
async def ledger(url: str) -> AsyncIterator[PostgresLedger]:
    async with PostgresLedger.connect(url, pool_size=4) as connected:
        yield connected


class Sql:
    """What an analyst's psql would show."""

    def __init__(self, url: str) -> None:
        self._url = url

    def rows(self, query: str, **parameters: object) -> list[dict[str, object]]:
        with psycopg.connect(self._url, row_factory=psycopg.rows.dict_row) as connection:
            return connection.execute(query, parameters).fetchall()

    def row(self, query: str, **parameters: object) -> dict[str, object]:
        (row,) = self.rows(query, **parameters)
        return row

    def value(self, query: str, **parameters: object) -> object:
        (value,) = self.row(query, **parameters).values()
        return value

    def execute(self, query: str, **parameters: object) -> None:
        with psycopg.connect(self._url) as connection:
            connection.execute(query, parameters)


@pytest.fixture
def db(url: str) -> Sql:
    return Sql(url)


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def field(name: str = "total", value: FieldValue = Decimal("12.50"), **changes: Any) -> Field:
    kinds = {Decimal: FieldKind.MONEY, date: FieldKind.DATE, bool: FieldKind.BOOLEAN}
    made = Field(name, kinds.get(type(value), FieldKind.TEXT), str(value), value, 0.9, Box(0.1, 0.2, 0.3, 0.25))
    return dataclasses.replace(made, **changes)


class Samples:
    """Things to put into the ledger, and the usual ways through it."""

    now = NOW
    field = staticmethod(field)

    def ref(self, key: str = "a.pdf", etag: str = "1", **changes: Any) -> ObjectRef:
        made = ObjectRef("forms", key, etag, 1000, NOW, content_type="application/pdf")
        return dataclasses.replace(made, **changes)

    def refs(self, count: int) -> list[ObjectRef]:
        return [self.ref(f"in/{number:05}.pdf") for number in range(count)]

    def spec(self, source: str = "s3://forms/in", version: str = "v1", **changes: Any) -> BatchSpec:
        return dataclasses.replace(BatchSpec(source, "receipt", "ocr", version, {"limit": None}), **changes)

    def opened(self, pages: int = 1, sha256: str = "ab" * 32) -> OpenedDocument:
        return OpenedDocument(sha256, "application/pdf", pages)

    def attempt(self, **changes: Any) -> Attempt:
        made = Attempt(
            NOW,
            NOW + timedelta(seconds=2),
            "ocr",
            "pp-ocr",
            seconds={"render": 0.1, "ocr": 0.7, "infer": 0.2, "total": 2.0},
            width=1240,
            height=1754,
            dpi=150.0,
        )
        return dataclasses.replace(made, **changes)

    def extraction(self, *fields: Field, **changes: Any) -> Extraction:
        block = Block(BlockKind.TEXT, "Total 12.50", Box(0.1, 0.2, 0.3, 0.25), 0.9)
        made = Extraction("ocr", "receipt", fields or (field(),), (block,), "Total 12.50", 0.9, raw={"lines": 1})
        return dataclasses.replace(made, **changes)

    def failure(self, error: DocmillError | None = None) -> Failure:
        return failure_of(error or UnreadablePage("the page cannot be drawn"))

    async def batch(self, ledger: PostgresLedger, refs: list[ObjectRef], **spec: Any) -> UUID:
        """A batch that has taken the objects in."""
        batch = await ledger.start_batch(self.spec(**spec))
        await ledger.add_documents(batch.id, refs)
        return batch.id

    async def open_all(self, ledger: PostgresLedger, batch_id: UUID, pages: int = 1) -> None:
        """Open what is to be opened, each as a file of its own bytes."""
        for claim in await ledger.claim_documents(batch_id, "opener", 1000, 60):
            sha256 = hashlib.sha256(f"{claim.ref.key}{claim.ref.etag}".encode()).hexdigest()
            await ledger.record_opened(claim, self.opened(pages, sha256))

    async def read_all(self, ledger: PostgresLedger, batch_id: UUID) -> list[PageClaim]:
        """Open and read everything, merge, and leave the batch open."""
        await self.open_all(ledger, batch_id)
        claims = await ledger.claim_pages(batch_id, "reader", 1000, 60)
        for claim in claims:
            await ledger.record_page(claim, self.attempt(), self.extraction())
        await self.merge(ledger, batch_id)
        return claims

    async def merge(self, ledger: PostgresLedger, batch_id: UUID) -> int:
        waiting = await ledger.unmerged(batch_id)
        for reading_id in waiting:
            await ledger.record_result(reading_id, {"fields": []}, 0.9)
        return len(waiting)

    async def page(self, ledger: PostgresLedger, key: str = "a.pdf", pages: int = 1) -> PageClaim:
        """One claimed page of a new document, with the others of its pages left in the queue."""
        batch_id = await self.batch(ledger, [self.ref(key)])
        await self.open_all(ledger, batch_id, pages)
        (claim,) = await ledger.claim_pages(batch_id, "reader", 1, 60)
        return claim


@pytest.fixture(scope="session")
def samples() -> Samples:
    return Samples()
