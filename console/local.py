"""The local stack and the ledger, as commands use them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from console.output import console
from docmill.failures import DatabaseUnavailable
from docmill.settings import Settings, load_settings

if TYPE_CHECKING:
    from storage.queries import LedgerQueries

Result = TypeVar("Result")


def read_ledger(read: Callable[[LedgerQueries], Awaitable[Result]]) -> Result:
    """What ``read`` finds in the ledger.

    Raises:
        DatabaseUnavailable: Postgres does not answer, or the embedded one was never started.
        ConfigurationError: the database has no tables yet.
    """
    # imported where they are used, here and in the commands: `docmill --help` needs no database client
    from flows.endpoints import database_url
    from storage.embedded.postgres import EmbeddedPostgres
    from storage.queries import LedgerQueries

    settings = load_settings()
    url = database_url(settings)

    async def ask() -> Result:
        async with LedgerQueries.connect(url) as queries:
            return await read(queries)

    try:
        return asyncio.run(ask())
    except DatabaseUnavailable:
        if settings.database.url is None and not EmbeddedPostgres(settings.data_dir).running():
            raise DatabaseUnavailable("the local stack is down", remedy="docmill up") from None
        raise


def ready_to_run(*, quiet: bool) -> Settings:
    """The settings, with everything up that a flow run needs; the embedded servers are started where they are down."""
    from flows.bringing_up import bring_up, stack_of

    settings = load_settings()
    if not quiet and any(part.state == "stopped" for part in stack_of(settings).status()):
        console.print("starting the local stack (docmill down ends it)", style="dim")
    bring_up(settings)
    return settings
