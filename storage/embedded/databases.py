"""Databases on a Postgres server."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from docmill.failures import ConfigurationError, DatabaseUnavailable


def url_of(server_url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))


def ensure_database(server_url: str, name: str) -> str:
    """Make a database unless it is there.

    Args:
        server_url: ``postgresql://…`` of any database of the server.
        name: of the one that is wanted.

    Returns:
        its URL.

    Raises:
        ConfigurationError: it is missing and the user may not make databases.
        DatabaseUnavailable: the server does not answer.
    """
    plain = server_url.replace("postgresql+psycopg://", "postgresql://", 1)
    try:
        with psycopg.connect(plain, connect_timeout=5, autocommit=True) as connection:
            if connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone() is None:
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
        pass  # somebody else made it meanwhile
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"the database user may not make the database {name}", remedy=f"make it: create database {name}"
        ) from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            f"Postgres did not answer when the database {name} was asked for: {type(error).__name__}"
        ) from error
    return url_of(plain, name)
