"""Bring a database's tables and views up to date. The migrations ship inside the package and need no alembic.ini."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.failures import ConfigurationError
from storage.ledger.database import Database

# "docmill" in ASCII: two starters take turns, the second finds nothing to do.
_LOCK = 0x646F636D696C6C


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _head() -> str | None:
    return ScriptDirectory.from_config(_config()).get_current_head()


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


async def _migrate(url: str, step: Callable[[Connection], None]) -> None:
    async def migrate(connection: AsyncConnection) -> None:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        await connection.run_sync(step)

    async with Database(url, pool_size=1) as database:
        await database.run(migrate)


async def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database up to ``revision``, in one transaction; nothing happens where it is there already.

    Raises:
        ConfigurationError: the database is of a newer docmill than this one.
        DatabaseUnavailable, AccessDenied: it cannot be reached, or refuses the login or the right to make tables.
    """

    def step(connection: Connection) -> None:
        _refuse_newer(connection)
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    await _migrate(url, step)


async def downgrade(url: str, revision: str) -> None:
    """Go back to ``revision`` (``base``: no tables). What only newer tables hold is lost."""

    def step(connection: Connection) -> None:
        _refuse_newer(connection)
        config = _config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)

    await _migrate(url, step)


async def current(url: str) -> str | None:
    """The revision that the database is at; None where it has no tables of docmill."""
    async with Database(url, pool_size=1) as database:
        return await database.run(lambda connection: connection.run_sync(_revision))


async def needs_upgrade(url: str) -> bool:
    """Whether :func:`upgrade` would change something.

    Raises:
        ConfigurationError: the database is of a newer docmill than this one.
    """

    def behind(connection: Connection) -> bool:
        _refuse_newer(connection)
        return _revision(connection) != _head()

    async with Database(url, pool_size=1) as database:
        return await database.run(lambda connection: connection.run_sync(behind))


def _refuse_newer(connection: Connection) -> None:
    found = _revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found is not None and found not in known:
        raise ConfigurationError(
            f"the database is at revision {found}, which this docmill does not know",
            remedy="it was migrated by a newer docmill: install that one here as well",
        )
