"""Notes of what is in flight, in the registry; and how a crash of a server is told from a bad connection."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from docmill.failures import DatabaseUnavailable, DocmillError, RequestTimeout, ServerNotReady
from docmill.model_servers import ServerRecord, ServerRegistry, ServerState
from serving.chat.pool import EndpointPool
from serving.chat.pooled_server import PooledServer

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashTimings:
    """Durations in seconds; tests shorten them.

    Attributes:
        verdict_seconds: how long it may take to find out whether a server crashed.
        look_seconds: between two looks.
        looks: in a row at a server that is well after all, before its row is believed.
        note_seconds: deadline of one call of the registry.
        away_seconds: how long a registry that cannot be reached is not asked.
    """

    verdict_seconds: float = 15.0
    look_seconds: float = 0.5
    looks: int = 3
    note_seconds: float = 5.0
    away_seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class Note:
    """A request in flight.

    Attributes:
        standing: whether the registry knows of it.
        restarts: how often its server had been restarted when it was sent, None where unknown.
    """

    request_id: UUID
    standing: bool = False
    restarts: int | None = None


class InFlight:
    """Notes in the registry around each send. A registry that is away costs the notes, never the request."""

    def __init__(self, registry: ServerRegistry | None, pool: EndpointPool, timings: CrashTimings) -> None:
        self._registry = registry
        self._pool = pool
        self._timings = timings
        self._asked_again_at = 0.0
        self._warned = False
        self._restarts: WeakKeyDictionary[PooledServer, tuple[int, int]] = WeakKeyDictionary()
        self._ending: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Wait until all notes are taken back."""
        await asyncio.gather(*self._ending)

    async def begin(self, server: PooledServer, request_id: UUID, page_id: UUID | None) -> Note:
        """Note that a request is about to be sent."""
        registry, lease = self._registry, server.member.lease
        if registry is None or server.endpoint.server_id is None:
            return Note(request_id)
        restarts = await self._restarts_of(server)
        if lease is None:
            return Note(request_id, restarts=restarts)
        done = await self._asked(lambda: _then_true(registry.begin_request(request_id, lease, page_id)))
        return Note(request_id, standing=bool(done), restarts=restarts)

    async def end(self, note: Note) -> None:
        """Take the note back, even where the caller is cancelled."""
        if not note.standing:
            return
        task = asyncio.create_task(self._end(note.request_id))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        await asyncio.shield(task)

    async def crashes_of(self, page_id: UUID | None) -> int:
        """At how many restarts the page was in flight, as far as the registry knows."""
        registry = self._registry
        if registry is None or page_id is None:
            return 0
        return await self._asked(lambda: registry.crashes_of(page_id)) or 0

    async def crashed(self, server: PooledServer, note: Note) -> bool:
        """Whether the server crashed (or was restarted) with the request in flight.

        The note must still stand, so that the supervisor finds it. Where the server has a row, the row decides: it
        counts one more restart, or the server has left ``ready`` other than by being stopped. Where it has none, a
        server whose /health fails right after has crashed; one that is merely silent has not, as far as anybody can
        tell.
        """
        until = time.monotonic() + self._timings.verdict_seconds
        well = 0
        while True:
            row = await self._row(server)
            if row is not None and (verdict := _row_says(row, note)) is not None:
                return verdict
            try:
                await self._pool.probe(server)
                well += 1
            except RequestTimeout:
                if row is None:
                    return False
            except (ServerNotReady, DocmillError):
                well = 0
                if row is None:
                    return True
            if well and (row is None or well >= self._timings.looks):
                return False
            if time.monotonic() >= until:
                return not well
            await asyncio.sleep(self._timings.look_seconds)

    async def _restarts_of(self, server: PooledServer) -> int | None:
        known = self._restarts.get(server)
        if known is not None and known[0] == server.comebacks:
            return known[1]
        comebacks = server.comebacks
        row = await self._row(server)
        if row is None:
            return None
        self._restarts[server] = (comebacks, row.restarts)
        return row.restarts

    async def _row(self, server: PooledServer) -> ServerRecord | None:
        registry, server_id = self._registry, server.endpoint.server_id
        if registry is None or server_id is None:
            return None
        return await self._asked(lambda: registry.server(server_id))

    async def _end(self, request_id: UUID) -> None:
        registry = self._registry
        if registry is not None:
            await self._asked(lambda: registry.end_request(request_id))

    async def _asked(self, call: Callable[[], Awaitable[Result]]) -> Result | None:
        if time.monotonic() < self._asked_again_at:
            return None
        problem: DocmillError
        try:
            async with asyncio.timeout(self._timings.note_seconds):
                result = await call()
        except TimeoutError:
            problem = DatabaseUnavailable("the registry of model servers does not answer")
        except DocmillError as error:
            problem = error
        else:
            self._warned = False
            return result
        if isinstance(problem, DatabaseUnavailable):
            self._asked_again_at = time.monotonic() + self._timings.away_seconds
        if not self._warned:
            self._warned = True
            logger.warning("requests are sent without notes of what is in flight: %s", problem.message)
        return None


async def _then_true(call: Awaitable[None]) -> bool:
    await call
    return True


def _row_says(row: ServerRecord, note: Note) -> bool | None:
    if note.restarts is not None and row.restarts > note.restarts:
        return True
    if row.state is ServerState.FAILED:
        return True
    if row.state is ServerState.STARTING and note.restarts is None:
        return True  # where the number is known, it tells: a server answers a little before its row says so
    if row.state in (ServerState.DRAINING, ServerState.STOPPED):
        return False  # it was stopped on purpose
    return None
