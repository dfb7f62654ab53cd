"""Model servers as flows use them: ``async with model_server(profile) as server: await server.chat.ask(…)``."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from docmill.launching import Endpoint
from docmill.model_servers import ServerRecord, ServerRegistry, ServerState
from docmill.settings import Settings, load_settings
from flows.endpoints import database_url
from flows.keep_warm_runs import ask_keep_warm
from flows.launches import StartOptions, profile_key
from flows.server_access import client_key, reachable, refuse_unreachable
from flows.server_holds import OnProgress, ServerHold, end_quietly, log_progress
from flows.starters import Starter, StartsByDeployment, StartsHere, StartsNever
from flows.supervision import unhindered
from serving.chat.attaching import attached_endpoints
from serving.chat.client import ChatClient
from serving.chat.pool import EndpointPool
from serving.chat.pooled_server import PoolMember
from storage.ledger.model_servers import PostgresServerRegistry


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A model that can be asked.

    Attributes:
        profile: what it was asked for by; in attach mode only a name.
        pool: its servers.
        chat: asks them.
        attached: whether they are run by others.
    """

    profile: str
    pool: EndpointPool
    chat: ChatClient
    attached: bool = False


def new_holder(what: str | None = None) -> str:
    """A name for one hold: ``HOST:PID:WHAT:TOKEN``, where WHAT is the flow run's name and id where there is one."""
    if what is None:
        from prefect.runtime import flow_run

        what = f"{flow_run.name} {str(flow_run.id)[:8]}" if flow_run.id else "docmill"
    return f"{socket.gethostname()}:{os.getpid()}:{what}:{secrets.token_hex(3)}"


@asynccontextmanager
async def model_server(
    profile: str | None = None,
    *,
    settings: Settings | None = None,
    registry: ServerRegistry | None = None,
    holder: str | None = None,
    on_progress: OnProgress = log_progress,
    options: StartOptions | None = None,
) -> AsyncIterator[ModelServer]:
    """The servers of a model, ready; started where there is none and ``serving.start`` lets it.

    They stay warm for as long as this is open, and go away by their own rules after it. With ``serving.base_urls``
    nothing is started, stopped or leased: those servers are asked.

    Args:
        profile: a profile's name or a folder; ``serving.profile`` by default.
        settings: by default those of this process.
        registry: by default the ledger's.
        holder: what the hold is called, see :func:`new_holder`.
        on_progress: is told how a starting server stands, at most once a second.
        options: of a start, where one is made here.

    Raises:
        DocmillError: the named error that the server failed with; ServerNotReady where it is not ready in time or
            nobody starts one; DatabaseUnavailable, ModelNotFound.
    """
    settings = settings or load_settings()
    name = profile or settings.serving.profile
    patience = settings.pipeline.transient_patience_seconds
    async with AsyncExitStack() as stack:
        if settings.serving.base_urls:
            given = settings.serving.api_key
            endpoints = attached_endpoints(settings.serving.base_urls, given.get_secret_value() if given else None)
            pool = await stack.enter_async_context(EndpointPool(endpoints))
            chat = await stack.enter_async_context(ChatClient(pool, patience_seconds=patience))
            yield ModelServer(name, pool, chat, attached=True)
            return
        name = profile_key(name, settings)
        if registry is None:
            registry = await stack.enter_async_context(PostgresServerRegistry.connect(database_url(settings)))
        starter = starter_of(settings, name, registry, options)
        hold = ServerHold(registry, name, holder or new_holder(), settings.serving.lease_seconds, starter)
        stack.push_async_callback(lambda: unhindered(hold.release()))
        live = await hold.until_ready(settings.serving.ready_seconds, on_progress)
        refuse_unreachable(live)
        pool = await stack.enter_async_context(EndpointPool(members(hold, live, settings)))
        keeping = asyncio.create_task(hold.keep(lambda rows: pool.replace(members(hold, rows, settings))))
        stack.push_async_callback(end_quietly, keeping)
        chat = await stack.enter_async_context(ChatClient(pool, registry, patience_seconds=patience))
        yield ModelServer(name, pool, chat)


def starter_of(
    settings: Settings, profile: str, registry: ServerRegistry, options: StartOptions | None = None
) -> Starter:
    """Who starts servers of the profile, as ``serving.start`` says."""
    match settings.serving.start:
        case "here":
            return StartsHere(settings, profile, registry, options)
        case "keep-warm":
            return StartsByDeployment(profile, registry, ask_keep_warm(settings))
        case "never":
            return StartsNever(profile)


def members(hold: ServerHold, rows: list[ServerRecord], settings: Settings) -> list[PoolMember]:
    """The servers that requests may go to: those that are ready, and those that come back after a crash."""
    key = client_key(settings)  # the first server to be reached from outside makes it
    return [
        PoolMember(Endpoint(each.base_url, each.served_name, key, each.id), hold.leases[each.id])
        for each in rows
        if each.id in hold.leases
        and each.base_url
        and reachable(each)  # elsewhere, its address would lead to something of this host, and the key with it
        and (each.state is ServerState.READY or (each.state is ServerState.STARTING and each.ready_at is not None))
    ]


@dataclass
class _Shared:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    stack: AsyncExitStack | None = None
    server: ModelServer | None = None


class SharedModelServers:
    """One hold a profile for all that work in this event loop; the last user of a profile lets it go.

    Args:
        settings: of this process.
        registry: the ledger's.
    """

    def __init__(self, settings: Settings, registry: ServerRegistry) -> None:
        self._settings = settings
        self._registry = registry
        self._open: dict[str, _Shared] = {}

    @asynccontextmanager
    async def use(self, profile: str | None = None) -> AsyncIterator[ModelServer]:
        """The model's servers; what it raises, :func:`model_server` does."""
        name = profile or self._settings.serving.profile
        shared = self._open.setdefault(name, _Shared())
        async with shared.lock:
            if shared.server is None:
                stack = AsyncExitStack()
                opened = model_server(name, settings=self._settings, registry=self._registry)
                shared.server = await stack.enter_async_context(opened)
                shared.stack = stack
            shared.users += 1
            server = shared.server
        try:
            yield server
        finally:
            await unhindered(self._leave(shared))

    async def _leave(self, shared: _Shared) -> None:
        async with shared.lock:
            shared.users -= 1
            if not shared.users and shared.stack is not None:
                stack, shared.stack, shared.server = shared.stack, None, None
                await stack.aclose()
