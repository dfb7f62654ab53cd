"""Looking at model servers: all of them, or one with all that is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from docmill.failures import DatabaseUnavailable, DocmillError
from docmill.model_failures import ServerUnknown
from docmill.model_servers import Restart, ServerRecord
from docmill.settings import Settings
from flows.endpoints import database_url
from flows.launches import profile_key
from flows.server_ends import end_those_lost
from storage.embedded.postgres import EmbeddedPostgres
from storage.ledger.model_servers import PostgresServerRegistry

SHORTEST_ID = 4


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a server, and until when unless the lease is renewed."""

    name: str
    until: datetime


@dataclass(frozen=True, slots=True)
class ServerDetail:
    """A server and what belongs to it."""

    server: ServerRecord
    holders: tuple[Holder, ...]
    restarts: tuple[Restart, ...]


async def servers_of(settings: Settings, *, live: bool) -> list[ServerRecord]:
    """The rows, newest first; a row of this host whose supervisor is gone is ended before.

    Raises:
        DatabaseUnavailable: the ledger is down.
    """
    try:
        async with PostgresServerRegistry.connect(database_url(settings)) as registry:
            await end_those_lost(registry)
            return await registry.servers(live=live)
    except DatabaseUnavailable:
        if settings.database.url is None and not EmbeddedPostgres(settings.data_dir).running():
            raise DatabaseUnavailable(
                "the local stack is down, and its database with the rows of model servers", remedy="docmill up"
            ) from None
        raise


async def servers_called(settings: Settings, name: str) -> list[ServerRecord]:
    """The live servers of that name, or the one with that id or beginning of an id; else the newest ended one.

    A name is that of a profile, a folder, a folder's last part or what requests call the model: whatever is shown.

    Raises:
        ServerUnknown: there is none.
        DatabaseUnavailable: the ledger is down.
    """
    rows = await servers_of(settings, live=False)
    try:
        key = profile_key(name, settings)
    except DocmillError:
        key = name
    found = [each for each in rows if each.profile in (name, key)]
    found = found or [each for each in rows if name in (Path(each.profile).name, each.served_name)]
    if not found and len(name) >= SHORTEST_ID:
        found = [each for each in rows if str(each.id).startswith(name.lower())]
    if not found:
        raise ServerUnknown(f"there is no model server {name}")
    return [each for each in found if each.state.live] or found[:1]


async def server_in_detail(settings: Settings, name: str) -> ServerDetail:
    """The newest server of that name, with who holds it and its restarts.

    Raises:
        ServerUnknown: there is none.
        DatabaseUnavailable: the ledger is down.
    """
    record = (await servers_called(settings, name))[0]
    async with PostgresServerRegistry.connect(database_url(settings)) as registry:
        holders = tuple(Holder(*each) for each in await registry.holders(record.id))
        return ServerDetail(record, holders, tuple(await registry.restarts(record.id)))
