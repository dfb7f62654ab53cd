"""Rows of model servers: read, made, described, ended; and which GPUs each holds.

Locks, in this order: the profile's or the host's advisory lock, then leases, then servers by id. What decides by the
leases of a server clears the expired ones first, so that a renewal at the same moment either comes before (and the
lease is live) or finds its lease gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, insert, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.failures import LeaseLost, UnexpectedError
from docmill.model_failures import ServerAlreadyUp, ServerFailed, ServerInUse, ServerUnknown
from docmill.model_servers import DESCRIBED, STALE_SECONDS, ServerRecord, ServerState, StopRequest
from storage.ledger import schema
from storage.ledger.batches import take_turn
from storage.ledger.codec import clean_text
from storage.ledger.server_leases import clear_expired, drop_leases

_LIVE = "state NOT IN ('stopped', 'failed')"

_LEASES = """
(SELECT count(*) FROM model_leases l WHERE l.server_id = s.id AND l.expires_at > now()) AS leases
"""

_SERVER = text(f"SELECT s.*, {_LEASES} FROM model_servers s WHERE s.id = :id")

_SERVERS = text(f"""
SELECT s.*, {_LEASES} FROM model_servers s
WHERE (CAST(:profile AS text) IS NULL OR s.profile = :profile) AND (NOT :live OR s.{_LIVE})
ORDER BY s.created_at DESC, s.id DESC
""")

_HOLDERS = text("""
SELECT holder, expires_at FROM model_leases WHERE server_id = :id AND expires_at > now() ORDER BY created_at, holder
""")

_OWNED = text(f"SELECT profile, host, state, gpus FROM model_servers WHERE id = :id AND {_LIVE}")

# The row is looked at again once it is locked: a heartbeat at the same moment saves it.
_STALE = text(f"""
SELECT id, host FROM model_servers
WHERE {_LIVE} AND heartbeat_at <= now() - make_interval(secs => :seconds)
    AND (CAST(:profile AS text) IS NULL OR profile = :profile)
    AND (CAST(:host AS text) IS NULL OR host = :host)
    AND (CAST(:but AS uuid) IS NULL OR id <> :but)
ORDER BY id FOR NO KEY UPDATE
""")

_END = text(f"""
UPDATE model_servers SET state = :state, error_code = :code, message = :message, ended_at = now()
WHERE id = :id AND {_LIVE}
RETURNING id
""")

_ENTER = text(f"""
UPDATE model_servers
SET state = CASE state WHEN 'draining' THEN 'draining' ELSE :state END, error_code = :code, message = :message,
    ready_at = CASE WHEN :state = 'ready' AND state <> 'draining' THEN now() ELSE ready_at END, heartbeat_at = now()
WHERE id = :id AND {_LIVE}
RETURNING id
""")

_DRAIN = text(f"""
UPDATE model_servers SET state = 'draining', heartbeat_at = now() WHERE id = :id AND {_LIVE} RETURNING id
""")

_STOP = text(f"""
UPDATE model_servers SET stop_requested = CASE stop_requested WHEN 'force' THEN 'force' ELSE :wanted END
WHERE id = :id AND {_LIVE}
""")

_BEAT = text(f"""
UPDATE model_servers s SET heartbeat_at = now()
WHERE s.id = :id AND s.{_LIVE}
RETURNING s.stop_requested, {_LEASES},
    extract(epoch FROM now() - greatest(s.created_at, s.last_leased_at))::double precision AS idle
""")

_TAKEN = text(f"""
SELECT DISTINCT unnest(gpus) FROM model_servers WHERE host = :host AND id <> :id AND {_LIVE}
""")

_TAKE = text(f"""
UPDATE model_servers SET gpus = CAST(:gpus AS integer[]), heartbeat_at = now() WHERE id = :id AND {_LIVE} RETURNING id
""")


def profile_turn(profile: str) -> str:
    """The name of the profile's advisory lock."""
    return f"model-profile:{clean_text(profile)}"


def record_of(row: Row[Any]) -> ServerRecord:
    """The row with ``leases``, as the contract has it."""
    columns = {name: value for name, value in row._mapping.items() if name != "last_leased_at"}
    columns.update(state=ServerState(row.state), stop_requested=StopRequest(row.stop_requested), gpus=tuple(row.gpus))
    return ServerRecord(**columns)


def lost(server_id: UUID) -> LeaseLost:
    """For a supervisor whose row has ended."""
    return LeaseLost(
        f"the row of model server {server_id} has ended: its supervisor counts as lost",
        remedy="its process must end; the next flow that needs the model starts another",
    )


async def server(connection: AsyncConnection, server_id: UUID) -> ServerRecord:
    """One row. Raises ServerUnknown."""
    row = (await connection.execute(_SERVER, {"id": server_id})).one_or_none()
    if row is None:
        raise ServerUnknown(f"there is no model server {server_id}")
    return record_of(row)


async def servers(connection: AsyncConnection, profile: str | None, *, live: bool) -> list[ServerRecord]:
    """Rows, newest first."""
    wanted = None if profile is None else clean_text(profile)
    return [record_of(row) for row in await connection.execute(_SERVERS, {"profile": wanted, "live": live})]


async def holders(connection: AsyncConnection, server_id: UUID) -> list[tuple[str, Any]]:
    """(holder, end) of the live leases."""
    return [(row.holder, row.expires_at) for row in await connection.execute(_HOLDERS, {"id": server_id})]


async def owned(connection: AsyncConnection, server_id: UUID) -> Row[Any]:
    """Profile, host, state and GPUs of a live row. Raises LeaseLost."""
    row = (await connection.execute(_OWNED, {"id": server_id})).one_or_none()
    if row is None:
        raise lost(server_id)
    return row


async def new_server(connection: AsyncConnection, profile: str, host: str) -> UUID:
    """A row in state ``starting``."""
    table = schema.model_servers
    made = insert(table).values(profile=clean_text(profile), host=clean_text(host)).returning(table.c.id)
    server_id: UUID = (await connection.execute(made)).scalar_one()
    return server_id


async def add_servers(connection: AsyncConnection, profile: str, host: str, count: int) -> list[UUID]:
    """Rows in state ``starting``. Raises ServerAlreadyUp."""
    await take_turn(connection, profile_turn(profile))
    await reap_stale(connection, STALE_SECONDS, profile=profile)
    for up in await servers(connection, profile, live=True):
        raise ServerAlreadyUp(
            f"a server of {profile} is {up.state} on {up.host} already",
            remedy=f"use it; or stop it first: docmill stop {profile}",
        )
    return [await new_server(connection, profile, host) for _ in range(count)]


async def request_stop(connection: AsyncConnection, server_id: UUID, *, force: bool) -> ServerRecord:
    """Ask for the end. Raises ServerInUse, ServerUnknown."""
    record = await server(connection, server_id)
    await take_turn(connection, profile_turn(record.profile))
    await clear_expired(connection, [server_id])
    held = [holder for holder, _ in await holders(connection, server_id)]
    record = await server(connection, server_id)
    if record.state.live and held and not force:
        raise ServerInUse(
            f"the server of {record.profile} on {record.host} is held by {', '.join(held)}",
            remedy="wait until its holders are done (a keep-warm run: cancel it), or: "
            f"docmill stop {record.profile} --force",
        )
    wanted = StopRequest.FORCE if force else StopRequest.DRAIN
    await connection.execute(_STOP, {"id": server_id, "wanted": wanted.value})
    return await server(connection, server_id)


async def reap_stale(
    connection: AsyncConnection,
    stale_seconds: float,
    *,
    profile: str | None = None,
    host: str | None = None,
    but: UUID | None = None,
) -> list[ServerRecord]:
    """Live rows (of the profile, of the host) without a sign of life become ``failed``."""
    found = {
        "seconds": float(stale_seconds),
        "profile": None if profile is None else clean_text(profile),
        "host": host,
        "but": but,
    }
    stale = (await connection.execute(_STALE, found)).all()
    for row in stale:
        silent = f"no sign of life from its supervisor on {row.host} for more than {stale_seconds:g} s"
        await _end(connection, row.id, ServerState.FAILED, ServerFailed.code, silent)
    return [await server(connection, row.id) for row in stale]


async def _end(
    connection: AsyncConnection, server_id: UUID, state: ServerState, code: str | None, message: str | None
) -> None:
    await drop_leases(connection, server_id)
    ended = {"id": server_id, "state": state.value, "code": code, "message": message}
    if (await connection.execute(_END, ended)).one_or_none() is None:
        raise lost(server_id)


async def enter(
    connection: AsyncConnection, server_id: UUID, state: ServerState, error_code: str | None, message: str | None
) -> None:
    """Enter a state. Raises LeaseLost."""
    message = None if message is None else clean_text(message)
    if not state.live:
        await take_turn(connection, profile_turn((await owned(connection, server_id)).profile))
        await _end(connection, server_id, state, error_code, message)
        return
    entered = {"id": server_id, "state": state.value, "code": error_code, "message": message}
    if (await connection.execute(_ENTER, entered)).one_or_none() is None:
        raise lost(server_id)


async def describe(connection: AsyncConnection, server_id: UUID, columns: dict[str, Any]) -> None:
    """Set columns. Raises LeaseLost; UnexpectedError for one that is not to be described."""
    if unknown := sorted(set(columns) - DESCRIBED):
        raise UnexpectedError(f"a model server's row has no {', '.join(unknown)} to describe")
    values: dict[str, Any] = {
        name: clean_text(value) if isinstance(value, str) else value for name, value in columns.items()
    }
    if "gpus" in values:
        values["gpus"] = list(values["gpus"])
    if "metrics" in values:
        values["metrics_at"] = text("now()")
    table = schema.model_servers
    described = (
        update(table)
        .where(table.c.id == server_id, table.c.state.not_in(("stopped", "failed")))
        .values(**values, heartbeat_at=text("now()"))
        .returning(table.c.id)
    )
    if (await connection.execute(described)).one_or_none() is None:
        raise lost(server_id)


async def beat(connection: AsyncConnection, server_id: UUID) -> Row[Any]:
    """Say that the supervisor lives: (stop_requested, leases, idle). Raises LeaseLost."""
    await clear_expired(connection, [server_id], wait=False)
    row = (await connection.execute(_BEAT, {"id": server_id})).one_or_none()
    if row is None:
        raise lost(server_id)
    return row


async def begin_drain(connection: AsyncConnection, server_id: UUID, *, force: bool) -> bool:
    """Enter ``draining`` unless a lease is live. Raises LeaseLost."""
    await take_turn(connection, profile_turn((await owned(connection, server_id)).profile))
    await clear_expired(connection, [server_id])
    row = await owned(connection, server_id)
    if row.state == ServerState.DRAINING:
        return True
    if not force and await holders(connection, server_id):
        return False
    if (await connection.execute(_DRAIN, {"id": server_id})).one_or_none() is None:
        raise lost(server_id)
    return True


async def assign_gpus(
    connection: AsyncConnection, server_id: UUID, candidates: Sequence[int], count: int
) -> tuple[int, ...]:
    """Take GPUs of the row's host; () where too few are free. Raises LeaseLost."""
    host = (await owned(connection, server_id)).host
    await take_turn(connection, f"model-host:{host}")
    await reap_stale(connection, STALE_SECONDS, host=host, but=server_id)
    taken = set((await connection.execute(_TAKEN, {"host": host, "id": server_id})).scalars())
    free = sorted(set(candidates) - taken)
    if len(free) < count:
        return ()
    chosen = tuple(free[:count])
    took = await connection.execute(_TAKE, {"id": server_id, "gpus": list(chosen)})
    if took.one_or_none() is None:
        raise lost(server_id)
    return chosen
