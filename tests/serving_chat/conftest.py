"""A scripted server, a pool and a client with short waits."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest
from memory_registry import MemoryRegistry
from scripted_chat import ScriptedChat

from docmill import retrying
from docmill.chat import ChatRequest, Deadlines
from docmill.launching import Endpoint
from docmill.model_servers import ServerLease, ServerState
from docmill.ports import PageImage
from serving.chat.client import ChatClient
from serving.chat.in_flight import CrashTimings
from serving.chat.pool import EndpointPool
from serving.chat.pool_timings import PoolTimings
from serving.chat.pooled_server import PoolMember

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PATIENT = 30.0


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(retrying, "LONGEST_WAIT_SECONDS", 0.05)


class Registry(MemoryRegistry):
    """One server that is ready, and what the client noted of it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[UUID | None] = []
        self.server_id = UUID(int=0)

    async def ready(self, endpoint: Endpoint) -> PoolMember:
        """The server's row and a lease on it."""
        acquired = await self.acquire("profile", "test", 60.0, start_on="host")
        (lease,), self.server_id = acquired.leases, acquired.to_start
        await self.enter(self.server_id, ServerState.READY)
        return PoolMember(replace(endpoint, server_id=self.server_id), lease)

    async def crash(self) -> None:
        """What a supervisor records when its server died, and when it is back."""
        await self.record_restart(self.server_id, code="server_crashed", message="m", exit_code=-9, log_tail="")
        await self.enter(self.server_id, ServerState.READY)

    @property
    def noted(self) -> list[UUID | None]:
        """The pages in flight."""
        return self.in_flight(self.server_id)

    @property
    def crashes(self) -> dict[UUID, int]:
        return self._crashes

    async def begin_request(self, request_id: UUID, lease: ServerLease, page_id: UUID | None) -> None:
        await super().begin_request(request_id, lease, page_id)
        self.begun.append(page_id)


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
async def started() -> AsyncIterator[Callable[..., Awaitable[ScriptedChat]]]:
    """Starts scripted servers, which end after the clients and pools."""
    async with AsyncExitStack() as stack:
        yield lambda **given: stack.enter_async_context(ScriptedChat(**given))


@pytest.fixture
async def chat(started: Callable[..., Awaitable[ScriptedChat]]) -> ScriptedChat:
    return await started()


@pytest.fixture
async def made(started: object) -> AsyncIterator[SimpleNamespace]:
    """``pool(members)`` and ``client(pool, registry)``, closed at the end."""
    async with AsyncExitStack() as stack:

        async def pool(*members: object, **timings: float) -> EndpointPool:
            short = {"check_seconds": 60.0, "health_seconds": 5.0, "longest_backoff_seconds": 0.02} | timings
            return await stack.enter_async_context(EndpointPool(members, timings=PoolTimings(**short)))

        async def client(pool: EndpointPool, registry: object = None, *, patience: float = PATIENT) -> ChatClient:
            timings = CrashTimings(verdict_seconds=5.0, look_seconds=0.01, away_seconds=0.0)
            return await stack.enter_async_context(
                ChatClient(pool, registry, patience_seconds=patience, crash_timings=timings)
            )

        yield SimpleNamespace(pool=pool, client=client)


@pytest.fixture
async def client(made: SimpleNamespace, chat: ScriptedChat) -> ChatClient:
    """A client of the scripted server alone."""
    return await made.client(await made.pool(Endpoint(chat.url)))


@pytest.fixture
def question() -> ChatRequest:
    return ChatRequest(instruction="Read the page.", images=(PageImage(PNG, "image/png", 16, 16),))


@pytest.fixture
def hasty() -> Deadlines:
    return Deadlines(connect_seconds=2.0, first_token_seconds=0.1, between_tokens_seconds=0.1, total_seconds=5.0)
