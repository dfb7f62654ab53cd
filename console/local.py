"""The local stack and the ledger, as commands use them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from docmill.settings import load_settings
from flows.endpoints import database_url
from storage.queries import LedgerQueries

Result = TypeVar("Result")


def read_ledger(read: Callable[[LedgerQueries], Awaitable[Result]]) -> Result:
    """What ``read`` finds in the ledger.

    Raises:
        DatabaseUnavailable: Postgres does not answer, or the embedded one was never started.
        ConfigurationError: the database has no tables yet.
    """
    url = database_url(load_settings())

    async def ask() -> Result:
        async with LedgerQueries.connect(url) as queries:
            return await read(queries)

    return asyncio.run(ask())
