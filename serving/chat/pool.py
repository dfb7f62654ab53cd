"""The servers that requests go to: which are well, which is least busy, which are left alone for a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Self

import httpx

from docmill.failures import DocmillError, PermanentError, ServerNotReady
from docmill.launching import Endpoint
from serving.chat.health import alive, http_client, listed_models
from serving.chat.patience import Patience
from serving.chat.pool_timings import PoolTimings
from serving.chat.pooled_server import EndpointState, PooledServer, PoolMember

logger = logging.getLogger(__name__)


class EndpointPool:
    """Endpoints in use, round-robin by least outstanding requests.

    Each server's health (/health and /v1/models) is asked when it is new, after a failure and at intervals, by one task
    a server, which starts with the first request or with ``async with``. A server that is unwell, or whose circuit is
    open, gets no request; its own requests wait for it only where no other server is left.
    """

    def __init__(self, members: Iterable[PoolMember | Endpoint] = (), *, timings: PoolTimings | None = None) -> None:
        self.timings = timings or PoolTimings()
        self._servers: list[PooledServer] = []
        self._watches: dict[PooledServer, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._turn = 0
        self._http: httpx.AsyncClient | None = None
        self._watching = False
        self.replace(members)

    async def __aenter__(self) -> Self:
        self._watch_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the health checks. Requests that run are not touched."""
        self._watching = False
        ending = list(self._watches.values())
        self._watches.clear()
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    # --- who is in it ---------------------------------------------------------------------------------------------

    def replace(self, members: Iterable[PoolMember | Endpoint]) -> None:
        """Use these servers from now on. What is known of those that stay is kept, requests that run go on."""
        there = {server.key: server for server in self._servers}
        kept: dict[object, PooledServer] = {}
        for each in members:
            member = each if isinstance(each, PoolMember) else PoolMember(each)
            server = there.get(member.key) or PooledServer(member, self.timings)
            server.member = member
            kept[server.key] = server
        self._servers = list(kept.values())
        for server in [s for s in self._watches if s.key not in kept]:
            self._watches.pop(server).cancel()
        if self._watching:
            self._watch_all()
        self._notify()

    @property
    def servers(self) -> tuple[PooledServer, ...]:
        """Those in use now."""
        return tuple(self._servers)

    def states(self) -> tuple[EndpointState, ...]:
        """What is known of each server, for people."""
        return tuple(server.described() for server in self._servers)

    # --- requests -------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lend(
        self, patience: Patience, *, alone: bool = False, avoid: Collection[PooledServer] = ()
    ) -> AsyncIterator[PooledServer]:
        """A server to send one request to, waited for as long as the patience lasts.

        Args:
            patience: what waiting for a server is taken from; the very first look at a server is not, nor is waiting
                for the turn of a suspect.
            alone: the request was in flight at a crash: no other such request is at the same server meanwhile.
            avoid: servers that failed this request; taken only where no other is well.

        Raises:
            ServerNotReady: none in time; the message names each server and what is wrong with it.
            ServedNameUnknown, ServerRefused, ConfigurationError: every server is unfit until somebody acts.
        """
        self._watch_all()
        server = await self._choose(patience, alone, avoid)
        self._turn += 1
        on_trial = server.begin(self._turn, alone=alone)
        try:
            yield server
        finally:
            server.end(alone=alone, on_trial=on_trial)
            self._notify()

    def others(self, avoid: Collection[PooledServer]) -> bool:
        """Whether a server is well that is not among those."""
        now = time.monotonic()
        return any(server.fit(now) for server in self._servers if server not in avoid)

    def answered(self, server: PooledServer) -> None:
        """A request was answered."""
        server.circuit.succeeded()
        self._notify()

    def failed(self, server: PooledServer, error: DocmillError, *, unreachable: bool = False) -> None:
        """A request failed by the server's fault: its circuit counts it, its health is asked again."""
        server.last_error = error
        server.circuit.failed(time.monotonic(), unreachable=unreachable)
        server.suspected.set()
        self._notify()

    def rest(self, server: PooledServer, error: DocmillError, seconds: float) -> None:
        """The server asked to be left alone for so long."""
        server.last_error = error
        server.rests_until = max(server.rests_until, time.monotonic() + seconds)

    async def probe(self, server: PooledServer) -> None:
        """Ask /health once, now.

        Raises:
            ServerNotReady: it is not there or unwell.
            RequestTimeout: it does not answer.
        """
        await alive(self._client(), server.endpoint)

    # --- within ---------------------------------------------------------------------------------------------------

    async def _choose(self, patience: Patience, alone: bool, avoid: Collection[PooledServer]) -> PooledServer:
        while True:
            changed = self._changed
            now = time.monotonic()
            fit = [server for server in self._servers if server.fit(now)]
            free = [server for server in fit if not (alone and server.alone)]
            if free:
                wanted = [server for server in free if server not in avoid] or free
                return min(wanted, key=lambda server: (server.outstanding, server.turn))
            self._raise_if_unfit()
            counts = not fit and all(server.healthy is not None for server in self._servers)
            if counts and patience.left <= 0:
                raise self._not_ready()
            timers = [server.rests_until - now for server in self._servers if server.rests_until > now]
            await _wait(changed, min([*timers, *([patience.left] if counts else [])], default=None))
            if counts:
                patience.spend(time.monotonic() - now)

    def _raise_if_unfit(self) -> None:
        wrong = [server.last_error for server in self._servers if not server.healthy]
        permanent = [error for error in wrong if isinstance(error, PermanentError)]
        if permanent and len(permanent) == len(self._servers):
            kind, remedy = type(permanent[0]), permanent[0].remedy
            raise kind(self._told(), remedy=remedy, detail=self._detail())

    def _not_ready(self) -> ServerNotReady:
        if not self._servers:
            return ServerNotReady("no model server is up", remedy="start one: docmill serve; see: docmill servers")
        return ServerNotReady(f"no model server is ready: {self._told()}", detail=self._detail())

    def _told(self) -> str:
        return "; ".join(f"{server.url}: {server.why(time.monotonic())}" for server in self._servers)

    def _detail(self) -> dict[str, object]:
        return {"servers": {server.url: server.why(time.monotonic()) for server in self._servers}}

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            timings = self.timings
            self._http = http_client(timeout=httpx.Timeout(timings.health_seconds, connect=timings.connect_seconds))
        return self._http

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _watch_all(self) -> None:
        self._watching = True
        for server in self._servers:
            task = self._watches.get(server)
            if task is None or task.done():
                self._watches[server] = asyncio.create_task(self._watch(server), name=f"health of {server.url}")

    async def _watch(self, server: PooledServer) -> None:
        while True:
            await self._check(server)
            await _wait(server.suspected, server.seconds_to_check(time.monotonic()))
            server.suspected.clear()
            if (rest := server.seconds_to_probe(time.monotonic())) > 0:
                await asyncio.sleep(rest)  # the circuit is open: its backoff is kept however many requests failed

    async def _check(self, server: PooledServer) -> None:
        try:
            await alive(self._client(), server.endpoint)
            models = await listed_models(self._client(), server.endpoint)
        except DocmillError as error:
            if server.unwell(time.monotonic(), error):
                logger.warning("model server %s: %s", server.url, error.message)
        else:
            if server.well(time.monotonic(), models):
                logger.info("model server %s is ready and serves %s", server.url, ", ".join(models))
        self._notify()


async def _wait(event: asyncio.Event, seconds: float | None) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
