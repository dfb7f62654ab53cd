"""A scripted server, a pool and a client with short waits."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import pytest
from scripted_chat import ScriptedChat

from docmill import retrying
from docmill.chat import ChatRequest, Deadlines
from docmill.failures import DatabaseUnavailable
from docmill.launching import Endpoint
from docmill.model_servers import ServerLease, ServerRecord, ServerState
from docmill.ports import PageImage
from serving.chat.client import ChatClient
from serving.chat.in_flight import CrashTimings
from serving.chat.pool import EndpointPool
from serving.chat.pool_timings import PoolTimings

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PATIENT = 30.0


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(retrying, "LONGEST_WAIT_SECONDS", 0.05)


class Registry:
    """What the client asks of a registry, and what it said."""

    def __init__(self) -> None:
        self.away = False
        self.restarts = 0
        self.state = ServerState.READY
        self.in_flight: dict[UUID, UUID | None] = {}
        self.begun: list[UUID | None] = []
        self.crashes: dict[UUID, int] = {}

    def crash(self) -> None:
        """What a supervisor records when its server died."""
        self.restarts += 1
        for page_id in self.in_flight.values():
            if page_id is not None:
                self.crashes[page_id] = self.crashes.get(page_id, 0) + 1
        self.in_flight.clear()

    def _ask(self) -> None:
        if self.away:
            raise DatabaseUnavailable("Postgres is away")

    async def begin_request(self, request_id: UUID, lease: ServerLease, page_id: UUID | None) -> None:
        self._ask()
        self.in_flight[request_id] = page_id
        self.begun.append(page_id)

    async def end_request(self, request_id: UUID) -> None:
        self._ask()
        self.in_flight.pop(request_id, None)

    async def crashes_of(self, page_id: UUID) -> int:
        self._ask()
        return self.crashes.get(page_id, 0)

    async def server(self, server_id: UUID) -> ServerRecord:
        self._ask()
        now = datetime.now(UTC)
        return ServerRecord(
            id=server_id, profile="p", served_name="scripted", model="m", base_url="", state=self.state, host="h",
            config_hash="", created_at=now, heartbeat_at=now, restarts=self.restarts,
        )  # fmt: skip


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
