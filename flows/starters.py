"""Who starts a model server that is needed and not there."""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable
from typing import Protocol
from uuid import UUID

from docmill.failures import ConfigurationError, ServerNotReady
from docmill.model_servers import ServerRecord, ServerRegistry, ServerState
from docmill.settings import Settings
from flows.detached_supervisors import DetachedSupervisor, start_supervisor
from flows.launches import StartOptions
from flows.server_ends import end_lost

AskDeployment = Callable[[dict[str, object], str], Awaitable[Callable[[], Awaitable[str | None]]]]


class Starter(Protocol):
    """Starts a server, or sees to it that somebody does.

    Attributes:
        host: rows are made for it; None: this one makes none.
    """

    @property
    def host(self) -> str | None:
        """Where rows are made."""
        ...

    async def start(self, server_id: UUID) -> None:
        """Start the server of a row that was just made; a failure is in the row, too."""
        ...

    async def wanted(self) -> None:
        """No server is up or starting: called every now and then until one is.

        Raises:
            ServerNotReady: none will be.
        """
        ...

    async def check(self, record: ServerRecord) -> bool:
        """Look at the server of a live row; whether its supervisor is gone, and the row was ended therefore."""
        ...


class StartsHere:
    """Starts a detached supervisor on this host."""

    def __init__(
        self, settings: Settings, profile: str, registry: ServerRegistry, options: StartOptions | None = None
    ) -> None:
        self._settings = settings
        self._profile = profile
        self._registry = registry
        self._options = options
        self._started: dict[UUID, DetachedSupervisor] = {}

    @property
    def host(self) -> str | None:
        """The host of this process."""
        return socket.gethostname()

    async def start(self, server_id: UUID) -> None:
        """Start the server of one row."""
        await self.start_all([server_id])

    async def start_all(self, server_ids: list[UUID]) -> None:
        """Start one supervisor for these rows."""
        try:
            supervisor = start_supervisor(self._settings, self._profile, server_ids, self._options)
        except ConfigurationError as error:
            for server_id in server_ids:
                await self._registry.enter(server_id, ServerState.FAILED, error_code=error.code, message=str(error))
            raise
        self._started |= dict.fromkeys(server_ids, supervisor)

    async def wanted(self) -> None:
        """Nothing: it makes rows itself."""

    async def check(self, record: ServerRecord) -> bool:
        """A supervisor of ours that died before it could say why, or one of this host that was killed."""
        supervisor = self._started.get(record.id)
        if supervisor is None or (said := supervisor.ended()) is None:
            return await end_lost(self._registry, record)
        record = await self._registry.server(record.id)
        if record.pid is not None or record.ready_at is not None:
            return await end_lost(self._registry, record, certainly=True)
        if record.state.live:
            message = f"its supervisor ended at once; its last words (see {supervisor.log}):\n{said}"
            await self._registry.enter(
                record.id, ServerState.FAILED, error_code=ConfigurationError.code, message=message
            )
        return True


class StartsByDeployment:
    """Asks Prefect for a run of the deployment ``keep-warm``, which a worker on a GPU host takes.

    Args:
        ask: starts the run with (parameters, idempotency key); what it returns says how the run ended, None before.
    """

    ASK_AGAIN_SECONDS = 300.0

    def __init__(self, profile: str, registry: ServerRegistry, ask: AskDeployment) -> None:
        self._profile = profile
        self._registry = registry
        self._ask = ask
        self._ended: Callable[[], Awaitable[str | None]] | None = None

    @property
    def host(self) -> str | None:
        """None: the run makes the row."""
        return None

    async def start(self, server_id: UUID) -> None:
        """Never called."""

    async def wanted(self) -> None:
        """Ask once; all who ask for the same lack at the same time get the same run."""
        if self._ended is None:
            newest = next(iter(await self._registry.servers(profile=self._profile, live=False)), None)
            moment = int(time.time() // self.ASK_AGAIN_SECONDS)
            key = f"keep-warm {self._profile} after {newest.id if newest else 'none'} at {moment}"
            self._ended = await self._ask({"profile": self._profile, "minutes": 1}, key)
            return
        if (how := await self._ended()) is not None:
            self._ended = None
            raise ServerNotReady(
                f"the run of keep-warm that was to start {self._profile} ended without a server: {how}",
                remedy="see the run in Prefect's UI",
            )

    async def check(self, record: ServerRecord) -> bool:
        """False: the row's supervisor is the run's."""
        return False


class StartsNever:
    """Somebody else is to start it."""

    def __init__(self, profile: str) -> None:
        self._profile = profile

    @property
    def host(self) -> str | None:
        """None."""
        return None

    async def start(self, server_id: UUID) -> None:
        """Never called."""

    async def wanted(self) -> None:
        """Raise at once: waiting for people would look like hanging."""
        raise ServerNotReady(
            f"no server of {self._profile} is up, and serving.start is never",
            remedy=f"docmill serve {self._profile} on a host with GPUs, or set serving.start to here or keep-warm",
        )

    async def check(self, record: ServerRecord) -> bool:
        """False."""
        return False
