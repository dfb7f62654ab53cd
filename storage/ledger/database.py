"""Connections to Postgres: the pool, transactions that are run again after a collision, errors in docmill's words."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg
from sqlalchemy import Executable, Row, exc
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from docmill.failures import ConfigurationError, DocmillError
from storage.ledger.codec import dump_json
from storage.ledger.errors import (
    DatabaseAccessDenied,
    is_collision,
    is_foreign,
    no_database,
    state_of,
    translated,
)

T = TypeVar("T")

DRIVER = "postgresql+psycopg"
CONNECT_TIMEOUT_SECONDS = 10
COLLISION_TRIES = 6


def database_url(url: str) -> URL:
    """The URL for SQLAlchemy with the psycopg 3 driver.

    Args:
        url: ``postgresql://``, ``postgres://`` or ``postgresql+psycopg://``.

    Raises:
        ConfigurationError: it is not a URL, or names another database or driver. The message does not quote it, since
            it may hold a password.
    """
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError) as error:
        raise ConfigurationError(
            "database.url is not a URL", remedy="write it as postgresql://user:password@host:5432/name"
        ) from error
    if parsed.drivername not in {"postgresql", "postgres", DRIVER}:
        raise ConfigurationError(
            f"database.url names {parsed.drivername!r}, but docmill keeps its ledger in Postgres",
            remedy="write it as postgresql://user:password@host:5432/name",
        )
    return parsed.set(drivername=DRIVER)


class Database:
    """A pool of connections to one database.

    Args:
        url: see :func:`database_url`.
        pool_size: the most connections that are open at a time.
        prepared_statements: False behind a pooler that does not know them (pgbouncer before 1.21 in transaction mode).
    """

    def __init__(self, url: str, *, pool_size: int, prepared_statements: bool = True) -> None:
        self.url = database_url(url)
        arguments: dict[str, Any] = {} if prepared_statements else {"prepare_threshold": None}
        query = self.url.query
        arguments.update(
            (key, value)
            for key, value in {"connect_timeout": CONNECT_TIMEOUT_SECONDS, "application_name": "docmill"}.items()
            if key not in query
        )
        self.engine: AsyncEngine = create_async_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=30,
            pool_pre_ping=True,
            json_serializer=dump_json,
            json_deserializer=json.loads,
            connect_args=arguments,
            hide_parameters=True,  # a page's text must not reach a log by way of an error message
        )
        self._autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")  # the same pool

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run ``work`` in one transaction; after a deadlock or serialisation failure again, a few times.

        Raises:
            DocmillError: what :func:`storage.ledger.errors.translated` makes of the driver's errors.
        """

        async def transaction() -> T:
            async with self.engine.begin() as connection:
                return await work(connection)

        return await self._tried(transaction)

    async def once(self, statement: Executable, parameters: dict[str, Any]) -> list[Row[Any]]:
        """Run one statement that is a transaction by itself; its rows. Saves the way for BEGIN and for COMMIT.

        Raises:
            DocmillError: what :func:`storage.ledger.errors.translated` makes of the driver's errors.
        """

        async def alone() -> list[Row[Any]]:
            async with self._autocommit.connect() as connection:
                result = await connection.execute(statement, parameters)
                return list(result.all()) if result.returns_rows else []

        return await self._tried(alone)

    async def _tried(self, transaction: Callable[[], Awaitable[T]]) -> T:
        for trial in range(1, COLLISION_TRIES + 1):
            try:
                return await transaction()
            except Exception as error:
                if not is_foreign(error):
                    raise
                if not is_collision(error) or trial == COLLISION_TRIES:
                    raise await self.explained(error) from error
            await asyncio.sleep(random.uniform(0.5, 1.5) * 0.01 * 2**trial)
        raise AssertionError("unreachable")

    async def explained(self, error: BaseException) -> DocmillError:
        """The docmill error for one of the driver's; tells a refused login from a database that is not there."""
        found = translated(error, self.url)
        if isinstance(found, DatabaseAccessDenied) and state_of(error) is None and await self._logs_in_elsewhere():
            return no_database(self.url)
        return found

    async def _logs_in_elsewhere(self) -> bool:
        if self.url.database in {None, "postgres"}:
            return False
        where = self.url.set(drivername="postgresql", database="postgres").render_as_string(hide_password=False)
        try:
            connection = await psycopg.AsyncConnection.connect(where, connect_timeout=CONNECT_TIMEOUT_SECONDS)
        except psycopg.Error:
            return False
        await connection.close()
        return True
