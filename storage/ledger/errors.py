"""From errors of the driver and SQLAlchemy to those of docmill, by SQLSTATE and never by the text of a message."""

from __future__ import annotations

from typing import ClassVar

import psycopg
from sqlalchemy import exc
from sqlalchemy.engine import URL

from docmill.failures import (
    AccessDenied,
    Category,
    ConfigurationError,
    DatabaseUnavailable,
    DocmillError,
    UnexpectedError,
)

RETRIED_STATES = frozenset({"40001", "40P01"})  # serialization_failure, deadlock_detected

# Classes of SQLSTATE that pass: connection, resources, operator's action, system error, transaction rollback; and the
# single states lock_not_available and read_only_sql_transaction (a replica after a failover).
_PASSING_CLASSES = frozenset({"08", "40", "53", "57", "58"})
_PASSING_STATES = frozenset({"55P03", "25006", "25P03"})
_REFUSED_CLASSES = frozenset({"28"})
_NO_SCHEMA = frozenset({"42P01", "42703", "42883", "3F000"})  # undefined table, column, function, schema

SCHEMA_REMEDY = "bring the tables up to date: docmill ingest, serve and up do it when they begin"


class DatabaseAccessDenied(AccessDenied):
    """Postgres refuses the user or the password, or the user may not do this."""

    category: ClassVar[Category] = Category.DATABASE
    default_remedy = "check user, password and rights in database.url (or its password file): docmill config check"


def place_of(url: URL) -> str:
    """Where the database is, for messages: user, host, port and name, never the password."""
    user = f"{url.username}@" if url.username else ""
    return f"{user}{url.host or 'localhost'}:{url.port or 5432}/{url.database or ''}"


def driver_error(error: BaseException) -> BaseException:
    """The driver's own error inside SQLAlchemy's wrapping, or the error itself."""
    origin = getattr(error, "orig", None)
    return origin if isinstance(origin, BaseException) else error


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE, where the server gave one."""
    state = getattr(driver_error(error), "sqlstate", None)
    return state if isinstance(state, str) else None


def is_collision(error: BaseException) -> bool:
    """Whether the transaction only has to be run again (deadlock, serialisation)."""
    return state_of(error) in RETRIED_STATES


def is_foreign(error: BaseException) -> bool:
    """Whether the error comes from the driver, SQLAlchemy or the network, so that it must be translated."""
    return isinstance(error, exc.SQLAlchemyError | psycopg.Error | OSError | TimeoutError)


def translated(error: BaseException, url: URL) -> DocmillError:
    """The docmill error that says the same, for people."""
    place = place_of(url)
    state = state_of(error)
    origin = driver_error(error)
    detail = {"sqlstate": state} if state else {"type": type(origin).__name__}
    if state is None:
        return _without_state(error, origin, url)
    if state in _NO_SCHEMA:
        return ConfigurationError(
            f"the database {place} lacks docmill's tables, or has older ones", remedy=SCHEMA_REMEDY, detail=detail
        )
    if state == "3D000":
        return no_database(url)
    if state[:2] in _REFUSED_CLASSES:
        return DatabaseAccessDenied(f"Postgres refuses the login {place}", detail=detail)
    if state == "42501":
        return DatabaseAccessDenied(f"the database user lacks a right that docmill needs in {place}", detail=detail)
    if state[:2] in _PASSING_CLASSES or state in _PASSING_STATES:
        return DatabaseUnavailable(f"Postgres at {place} cannot serve now (SQLSTATE {state})", detail=detail)
    return UnexpectedError(f"Postgres refused a statement of docmill (SQLSTATE {state})", detail=detail)


def _without_state(error: BaseException, origin: BaseException, url: URL) -> DocmillError:
    place = place_of(url)
    detail = {"type": type(origin).__name__}
    if isinstance(error, exc.TimeoutError):
        return DatabaseUnavailable(
            f"no free connection to {place} in time",
            remedy="raise database.pool_size or lower pipeline.workers",
            detail=detail,
        )
    # libpq gives no SQLSTATE for a connection that was refused, but says whether a password was asked for.
    connection = getattr(origin, "pgconn", None)
    if connection is not None and (connection.needs_password or connection.used_password):
        return DatabaseAccessDenied(f"Postgres refuses the login {place}", detail=detail)
    if isinstance(origin, psycopg.OperationalError | psycopg.InterfaceError | OSError) or (
        isinstance(error, exc.DBAPIError) and error.connection_invalidated
    ):
        return DatabaseUnavailable(f"no connection to Postgres at {place}", detail=detail)
    return UnexpectedError(f"unexpected {type(origin).__module__}.{type(origin).__qualname__}", detail=detail)


def no_database(url: URL) -> ConfigurationError:
    """For a server that answers but has no such database."""
    return ConfigurationError(
        f"Postgres has no database named {url.database!r}",
        remedy="create it (createdb) or correct its name in database.url",
    )
