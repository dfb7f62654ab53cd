"""Both registries behind one fixture: in memory, and over a database of the test's own."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg
import pytest
from memory_registry import MemoryRegistry
from psycopg import sql

from docmill.ledger import BatchSpec, OpenedDocument
from docmill.model_servers import ServerRegistry, ServerState
from docmill.ports import ObjectRef
from storage.embedded.postgres import EmbeddedPostgres
from storage.ledger.model_servers import PostgresServerRegistry
from storage.ledger.postgres import PostgresLedger
from storage.migrations import upgrade

_numbers = itertools.count()

# What passing time would change, moved back instead. Restarts come in the order in which they happened, as they are.
_AGE = """
UPDATE model_servers SET created_at = created_at - {0}, heartbeat_at = heartbeat_at - {0}, ready_at = ready_at - {0},
    ended_at = ended_at - {0}, metrics_at = metrics_at - {0}, last_leased_at = last_leased_at - {0};
UPDATE model_leases SET created_at = created_at - {0}, expires_at = expires_at - {0};
UPDATE model_requests SET started_at = started_at - {0};
UPDATE model_restarts SET happened_at = happened_at - {0}
"""


@dataclass
class Bench:
    """A registry, and what tests need around it.

    Attributes:
        age: let so many seconds pass.
        page: the id of a new page.
        reopen: what reprocessing does to a page's count of crashes.
    """

    registry: ServerRegistry
    age: Callable[[float], None]
    page: Callable[[], Awaitable[UUID]]
    reopen: Callable[[UUID], None]

    async def ready(self, profile: str = "qwen", host: str = "gpu1") -> UUID:
        """A server that is up."""
        (server_id,) = await self.registry.add_servers(profile, host, 1)
        await self.registry.enter(server_id, ServerState.READY)
        return server_id


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

    def execute(self, query: str, **parameters: object) -> None:
        with psycopg.connect(self._url) as connection:
            connection.execute(query, parameters or None)


def _execute(server: EmbeddedPostgres, statement: str, *names: str) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in names)))


@pytest.fixture(scope="session")
def registry_template(embedded_postgres: EmbeddedPostgres) -> str:
    # The server lives as long as the tests: nothing on it has to survive a power cut.
    _execute(embedded_postgres, "ALTER SYSTEM SET fsync = off")
    _execute(embedded_postgres, "SELECT pg_reload_conf()")
    asyncio.run(upgrade(embedded_postgres.create_database("registry_template")))
    return "registry_template"


@pytest.fixture
def url(embedded_postgres: EmbeddedPostgres, registry_template: str) -> Iterator[str]:
    """A database of the test's own."""
    name = f"registry_{next(_numbers)}"
    _execute(embedded_postgres, "CREATE DATABASE {} TEMPLATE {}", name, registry_template)
    yield embedded_postgres.url(name)
    _execute(embedded_postgres, "DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def empty_url(embedded_postgres: EmbeddedPostgres) -> Iterator[str]:
    name = f"registry_empty_{next(_numbers)}"
    yield embedded_postgres.create_database(name)
    _execute(embedded_postgres, "DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def db(url: str) -> Sql:
    return Sql(url)


@pytest.fixture
async def ledger(url: str) -> AsyncIterator[PostgresLedger]:
    async with PostgresLedger.connect(url, pool_size=2) as connected:
        yield connected


async def new_batch(ledger: PostgresLedger, db: Sql, pages: int, key: str = "a.pdf") -> tuple[UUID, list[UUID]]:
    """A batch of one opened document; its pages in order."""
    batch = await ledger.start_batch(BatchSpec(f"s3://forms/{key}", "receipt", "vision", "v1", {}))
    row = db.row("SELECT now() AS now")
    await ledger.add_documents(batch.id, [ObjectRef("forms", key, "1", 1000, row["now"])])
    (claim,) = await ledger.claim_documents(batch.id, "opener", 1, 60)
    await ledger.record_opened(claim, OpenedDocument(uuid4().hex * 2, "application/pdf", pages))
    found = db.rows("SELECT id FROM pages WHERE batch_id = %(batch)s ORDER BY page_no", batch=batch.id)
    return batch.id, [each["id"] for each in found]


@pytest.fixture
def open_document(ledger: PostgresLedger, db: Sql) -> Callable[..., Awaitable[tuple[UUID, list[UUID]]]]:
    """(pages, key) -> the batch and the pages of a new, opened document."""
    return lambda pages, key="a.pdf": new_batch(ledger, db, pages, key)


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[Bench]:
    db = Sql(url)

    def age(seconds: float) -> None:
        db.execute(_AGE.format(f"interval '{seconds} seconds'"))

    def reopen(page_id: UUID) -> None:
        db.execute("UPDATE pages SET server_crashes = 0 WHERE id = %(id)s", id=page_id)

    async def page() -> UUID:
        async with PostgresLedger.connect(url, pool_size=1) as ledger:
            _, (page_id,) = await new_batch(ledger, db, 1, f"{uuid4()}.pdf")
        return page_id

    async with PostgresServerRegistry.connect(url, pool_size=4) as registry:
        yield Bench(registry, age, page, reopen)


async def _some_page() -> UUID:
    return uuid4()


@pytest.fixture(params=["memory", "postgres"])
def bench_url(request: pytest.FixtureRequest) -> str | None:
    """The database to test over; None: in memory."""
    return request.getfixturevalue("url") if request.param == "postgres" else None


@pytest.fixture
async def bench(bench_url: str | None) -> AsyncIterator[Bench]:
    if bench_url is None:
        memory = MemoryRegistry()
        yield Bench(memory, memory.age, _some_page, memory.reopen)
    else:
        async with _postgres(bench_url) as made:
            yield made


@pytest.fixture
async def postgres_bench(url: str) -> AsyncIterator[Bench]:
    async with _postgres(url) as made:
        yield made


@pytest.fixture
def registry(bench: Bench) -> ServerRegistry:
    return bench.registry
