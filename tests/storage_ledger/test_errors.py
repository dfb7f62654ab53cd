"""The driver's errors in docmill's words, and never a password in them."""

import asyncio

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text
from sqlalchemy.engine import make_url

from docmill.failures import AccessDenied, Category, ConfigurationError, DatabaseUnavailable, failure_of
from storage.embedded.state import free_port
from storage.ledger.database import Database, database_url
from storage.ledger.postgres import PostgresLedger
from storage.migrations import upgrade


def changed(url: str, **parts: object) -> str:
    return make_url(url).set(**parts).render_as_string(hide_password=False)


async def error_of(url: str, spec, kind: type[Exception], **options: object) -> Exception:
    async with PostgresLedger.connect(url, pool_size=1, **options) as ledger:
        with pytest.raises(kind) as caught:
            await ledger.start_batch(spec)
    password = make_url(url).password
    assert password not in str(caught.value) + repr(caught.value.detail)
    return caught.value


async def test_nobody_listens(url, samples) -> None:
    error = await error_of(changed(url, port=free_port()), samples.spec(), DatabaseUnavailable)
    assert "docmill config check" in str(error)


async def test_no_such_host(url, samples) -> None:
    await error_of(changed(url, host="no-such-host.invalid"), samples.spec(), DatabaseUnavailable)


@pytest.mark.parametrize("parts", [{"password": "wrong-secret"}, {"username": "stranger"}])
async def test_the_login_is_refused(url, samples, parts) -> None:
    error = await error_of(changed(url, **parts), samples.spec(), AccessDenied)
    assert failure_of(error).category is Category.DATABASE
    assert "password" in error.remedy


async def test_there_is_no_such_database(url, samples) -> None:
    error = await error_of(changed(url, database="nowhere"), samples.spec(), ConfigurationError)
    assert "nowhere" in error.message


async def test_there_are_no_tables(empty_url, samples) -> None:
    error = await error_of(empty_url, samples.spec(), ConfigurationError)
    assert "docmill" in error.remedy and "migrate" not in error.remedy  # there is no such command


async def test_the_user_lacks_a_right(url, db, samples) -> None:
    role = make_url(url).database + "_reader"
    db.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'reads-only'")
    try:
        error = await error_of(changed(url, username=role, password="reads-only"), samples.spec(), AccessDenied)
        assert failure_of(error).category is Category.DATABASE
        with pytest.raises(AccessDenied):
            await upgrade_as_reader(url, role)
    finally:
        db.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def upgrade_as_reader(url: str, role: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(sql.SQL("DROP TABLE alembic_version"))
    await upgrade(changed(url, username=role, password="reads-only"))


@pytest.mark.parametrize(
    "url", ["sqlite:///secret.db", "mysql://u:secret@h/d", "postgresql+asyncpg://u:secret@h/d", "secret", "://secret"]
)
def test_a_url_of_something_else_is_refused_without_quoting_it(url) -> None:
    with pytest.raises(ConfigurationError, match=r"database\.url") as caught:
        database_url(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
@pytest.mark.parametrize("prepared", [True, False])
async def test_every_way_to_write_the_url_connects(url, samples, scheme, prepared) -> None:
    written = f"{scheme}://{url.partition('://')[2]}"
    async with PostgresLedger.connect(written, pool_size=1, prepared_statements=prepared) as ledger:
        batch = await ledger.start_batch(samples.spec())
        for _ in range(7):  # psycopg prepares a statement at its sixth use
            assert await ledger.claim_pages(batch.id, "w", 1, 60) == []


async def test_without_prepared_statements_there_are_none(url) -> None:
    async with Database(url, pool_size=1, prepared_statements=False) as database:
        for _ in range(8):
            await database.run(lambda c: c.execute(text("SELECT 1 + 1")))
        found = await database.run(lambda c: c.scalar(text("SELECT count(*) FROM pg_prepared_statements")))
    assert found == 0


async def test_a_connection_that_broke_is_replaced(url, ledger, samples, db) -> None:
    batch = await ledger.start_batch(samples.spec())
    cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() {}"
    assert db.value(cut.format("AND pid <> pg_backend_pid()")) >= 1
    assert (await ledger.start_batch(samples.spec())).id == batch.id


async def test_a_connection_that_breaks_in_the_middle_is_passing_trouble(url) -> None:
    async with Database(url, pool_size=1) as database:
        with pytest.raises(DatabaseUnavailable):
            await database.run(lambda c: c.execute(text("SELECT pg_terminate_backend(pg_backend_pid())")))
        assert await database.run(lambda c: c.scalar(text("SELECT 1"))) == 1


async def test_a_deadlock_is_run_again(url, db, ledger, samples) -> None:
    ids = [(await ledger.start_batch(samples.spec(source=source))).id for source in ("a", "b")]
    met = asyncio.Barrier(2)
    tries = 0

    async with Database(url, pool_size=2) as database:

        async def both(order: list) -> None:
            first_time = True

            async def work(connection) -> None:
                nonlocal first_time, tries
                tries += 1
                for number, batch_id in enumerate(order):
                    await connection.execute(
                        text("UPDATE batches SET documents_unchanged = documents_unchanged + 1 WHERE id = :id"),
                        {"id": batch_id},
                    )
                    if number == 0 and first_time:
                        first_time = False
                        await met.wait()

            await database.run(work)

        await asyncio.gather(both(ids), both(ids[::-1]))
    assert tries == 3
    assert [row["documents_unchanged"] for row in db.rows("SELECT documents_unchanged FROM batches")] == [2, 2]


async def test_what_keeps_colliding_is_passing_trouble(url) -> None:
    tries = 0

    async def collide(connection) -> None:
        nonlocal tries
        tries += 1
        await connection.execute(text("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$"))

    async with Database(url, pool_size=1) as database:
        with pytest.raises(DatabaseUnavailable):
            await database.run(collide)
    assert tries == 6


async def test_a_full_pool_is_passing_trouble(url, monkeypatch) -> None:
    async with Database(url, pool_size=1) as database:
        database.engine.pool._timeout = 0.05

        async def nested(connection) -> None:
            await database.run(lambda c: c.execute(text("SELECT 1")))

        with pytest.raises(DatabaseUnavailable, match="free connection"):
            await database.run(nested)
