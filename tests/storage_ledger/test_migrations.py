"""Migrations: up from nothing, twice, down again, by several at once; and alike with the tables of the code."""

import asyncio

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine

from docmill.failures import ConfigurationError
from storage.ledger.database import database_url
from storage.ledger.schema import metadata
from storage.migrations import current, downgrade, needs_upgrade, upgrade

TABLES = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"


def value(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()[0]


async def test_up_twice_and_down(empty_url) -> None:
    assert await current(empty_url) is None
    assert await needs_upgrade(empty_url)
    await upgrade(empty_url)
    revision, tables = await current(empty_url), value(empty_url, TABLES)
    assert revision is not None
    assert not await needs_upgrade(empty_url)
    await upgrade(empty_url)
    assert (await current(empty_url), value(empty_url, TABLES)) == (revision, tables)
    await downgrade(empty_url, "base")
    assert await current(empty_url) is None
    assert value(empty_url, TABLES) == 1  # Alembic's own
    await upgrade(empty_url)
    assert value(empty_url, TABLES) == tables


async def test_every_step_goes_up_and_down(empty_url) -> None:
    for revision in ("0001", "0002", "0003", "0004"):
        await upgrade(empty_url, revision)
        assert await current(empty_url) == revision
    for revision in ("0003", "0002", "0001"):
        await downgrade(empty_url, revision)
        assert await current(empty_url) == revision
        assert await needs_upgrade(empty_url)


async def test_starters_at_the_same_moment_do_not_race(empty_url) -> None:
    await asyncio.gather(*(upgrade(empty_url) for _ in range(4)))
    assert not await needs_upgrade(empty_url)


async def test_a_database_of_a_newer_docmill_is_left_alone(url, db) -> None:
    db.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigurationError, match="9999"):
        await upgrade(url)
    with pytest.raises(ConfigurationError, match="newer"):
        await needs_upgrade(url)
    assert db.value("SELECT version_num FROM alembic_version") == "9999"


def test_the_migrated_tables_are_those_of_the_code(url) -> None:
    engine = create_engine(database_url(url))
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_server_default": True})
            assert compare_metadata(context, metadata) == []
    finally:
        engine.dispose()


def test_the_checks_are_those_of_the_code(url, db) -> None:
    in_code = {
        (table.name, constraint.name)
        for table in metadata.tables.values()
        for constraint in table.constraints
        if type(constraint).__name__ == "CheckConstraint"
    }
    found = db.rows(
        "SELECT conrelid::regclass::text AS t, conname AS c FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0"
    )
    assert {(row["t"], row["c"]) for row in found} == in_code


def test_enumerations_allow_what_the_code_knows(db) -> None:
    for table in metadata.tables.values():
        for constraint in table.constraints:
            if type(constraint).__name__ == "CheckConstraint" and " IN (" in str(constraint.sqltext):
                column, _, listed = str(constraint.sqltext).partition(" IN ")
                definition = db.value(
                    "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
                    " WHERE conname = %(name)s AND conrelid = to_regclass(%(table)s)",
                    name=constraint.name,
                    table=table.name,
                )
                wanted = {each.strip(" '()") for each in listed.split(",")}
                assert {part for part in definition.split("'") if part in wanted} == wanted, column
                assert definition.count("::text") == len(wanted), column


def test_every_foreign_key_has_an_index(db) -> None:
    """Or a delete would read whole tables. ``batch_id`` leads an index of several columns."""
    missing = db.rows("""
        SELECT c.conrelid::regclass::text AS t, a.attname AS c
        FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        WHERE c.contype = 'f' AND NOT EXISTS (
            SELECT FROM pg_index i
            WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1]
                AND (i.indpred IS NULL OR a.attname = 'page_id')
        )
    """)
    assert missing == []


def test_every_view_and_column_is_explained(db) -> None:
    missing = db.rows("""
        SELECT v.relname AS view, a.attname AS column FROM pg_class v
        JOIN pg_attribute a ON a.attrelid = v.oid AND a.attnum > 0
        WHERE v.relkind = 'v' AND v.relnamespace = 'public'::regnamespace
            AND (col_description(v.oid, a.attnum) IS NULL OR obj_description(v.oid, 'pg_class') IS NULL)
    """)
    assert missing == []
    assert db.value("SELECT count(*) FROM information_schema.views WHERE table_schema = 'public'") == 10


def test_no_view_needs_json(db) -> None:
    kinds = db.rows("""
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = 'public' AND starts_with(table_name, 'v_') AND starts_with(data_type, 'json')
    """)
    assert kinds == []
