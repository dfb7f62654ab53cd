"""A supervisor's side of its row: heartbeats, orders, and writes that survive a database that is away for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from uuid import UUID

from docmill.failures import DatabaseUnavailable, LeaseLost
from docmill.model_servers import Orders, ServerRegistry, ServerState, StopRequest
from serving.supervision.endings import ServerDied, StopAsked
from serving.supervision.server_process import ServerProcess
from serving.supervision.timings import SupervisorTimings

T = TypeVar("T")
_log = logging.getLogger(__name__)


class ServerRow:
    """The row of one server.

    A database that is away ends nothing: heartbeats go on, and what must be written waits. A row that somebody else
    ended (``LeaseLost``) sets ``lost``.

    Attributes:
        stop: is set once the row is ``draining``, or :meth:`ask_to_stop` was called.
        why: who asked for the stop.
        lost: is set when the row has ended behind the supervisor's back.
        orders: of the last heartbeat; None while the database is away.
        draining: whether the row says so already.
    """

    def __init__(self, server_id: UUID, registry: ServerRegistry, timings: SupervisorTimings) -> None:
        self.server_id = server_id
        self.registry = registry
        self.stop = asyncio.Event()
        self.lost = asyncio.Event()
        self.why = ""
        self.orders: Orders | None = None
        self.draining = False
        self._timings = timings
        self._beaten = asyncio.Event()

    def ask_to_stop(self, why: str) -> None:
        """Ask for the end, whoever holds a lease."""
        self.why = self.why or why
        self.stop.set()

    async def unless_ended(self, work: Coroutine[Any, Any, T], process: ServerProcess | None = None) -> T:
        """Do the work, unless something ends it before; then it is cancelled.

        Raises:
            LeaseLost: the row has ended.
            ServerDied: the process has.
            StopAsked: the end was asked for.
        """
        task = asyncio.ensure_future(work)
        lost = asyncio.ensure_future(self.lost.wait())
        stop = asyncio.ensure_future(self.stop.wait())
        death = asyncio.ensure_future(process.wait()) if process is not None else None
        waits: list[asyncio.Future[Any]] = [task, lost, stop, *([death] if death is not None else [])]
        finished: list[asyncio.Future[Any]] = []
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finished = [wait for wait in waits if wait.done()]
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if lost in finished:
            raise LeaseLost("the server's row has ended")
        if death is not None and death in finished:
            raise ServerDied(death.result())
        if task in finished:
            return task.result()
        raise StopAsked(self.why)

    async def beat(self) -> None:
        """Heartbeats without end, until the row is lost."""
        while True:
            try:
                await self.next_orders()
            except LeaseLost:
                self.lost.set()
                return
            except DatabaseUnavailable:
                self.orders = None
            except Exception:  # a bug must not silently end the heartbeats
                _log.exception("a heartbeat of model server %s failed", self.server_id)
                self.orders = None
            self._beaten.set()
            self._beaten = asyncio.Event()
            await asyncio.sleep(self._timings.heartbeat_seconds)

    async def next_beat(self) -> Orders | None:
        """Wait for the next heartbeat; its orders."""
        await self._beaten.wait()
        return self.orders

    async def next_orders(self) -> Orders:
        """A heartbeat now. An order to stop is followed as soon as no lease is live (or at once, by force)."""
        orders = await self.registry.heartbeat(self.server_id)
        if (
            orders.stop is not StopRequest.NONE
            and not self.draining
            and await self.begin_drain(force=orders.stop is StopRequest.FORCE)
        ):
            self.ask_to_stop("stopped on request")
        self.orders = orders
        return orders

    async def begin_drain(self, *, force: bool) -> bool:
        """Enter ``draining``; False where a lease is live."""
        if not self.draining:
            self.draining = await self.registry.begin_drain(self.server_id, force=force)
        return self.draining

    async def tell(self, **columns: Any) -> None:
        """Write if the database is there. Raises LeaseLost."""
        try:
            await self.registry.describe(self.server_id, **columns)
        except DatabaseUnavailable:
            _log.warning("the database is away; model server %s goes on", self.server_id)

    async def insist(self, write: Callable[[], Awaitable[T]]) -> T:
        """Write, however long the database is away. Raises LeaseLost."""
        while True:
            try:
                return await write()
            except DatabaseUnavailable:
                await asyncio.sleep(self._timings.heartbeat_seconds)

    async def enter(self, state: ServerState, *, error_code: str | None = None, message: str | None = None) -> None:
        """Enter a state, however long the database is away. Raises LeaseLost."""
        await self.insist(lambda: self.registry.enter(self.server_id, state, error_code=error_code, message=message))

    async def farewell(self, write: Callable[[], Awaitable[object]]) -> None:
        """A last write: tried for a while only; nothing is raised."""
        try:
            async with asyncio.timeout(self._timings.farewell_seconds):
                await self.insist(write)
        except TimeoutError:
            _log.warning("the database is away: the row of model server %s stays as it is", self.server_id)
        except LeaseLost:
            _log.info("the row of model server %s has ended already", self.server_id)
