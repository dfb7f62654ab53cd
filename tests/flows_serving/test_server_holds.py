"""Holds: what is told, what is survived, who starts, who is picked up."""

import asyncio
import dataclasses
from uuid import UUID

import pytest
from memory_registry import MemoryRegistry

from docmill.failures import DatabaseUnavailable, ServerNotReady
from docmill.model_failures import ServerFailed, ServerOutOfMemory
from docmill.model_servers import ServerState
from flows.server_errors import error_of
from flows.server_holds import ServerHold
from flows.starters import StartsByDeployment


class Flaky(MemoryRegistry):
    """A registry that is away when told so."""

    away = False

    async def renew(self, leases, lease_seconds):
        self._check()
        return await super().renew(leases, lease_seconds)

    async def servers(self, **which):
        self._check()
        return await super().servers(**which)

    def _check(self) -> None:
        if self.away:
            raise DatabaseUnavailable("it is away")


class Scripted:
    """A starter that makes rows and does what the test says with them."""

    host = "here"

    def __init__(self, registry: MemoryRegistry, *states: tuple[ServerState, str | None]) -> None:
        self.registry = registry
        self.states = list(states)
        self.started: list[UUID] = []

    async def start(self, server_id: UUID) -> None:
        self.started.append(server_id)
        state, code = self.states.pop(0)
        await self.registry.describe(server_id, base_url=f"http://here:{len(self.started)}", served_name="m")
        message = "it ended (mend it)\nlast log lines:\nfirst\nsecond" if code else None
        await self.registry.enter(server_id, state, error_code=code, message=message)

    async def wanted(self) -> None:
        raise AssertionError("it makes rows")

    async def check(self, record) -> None:
        pass


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("flows.server_holds.WAITING_LOOK_SECONDS", 0.01)
    monkeypatch.setattr("flows.server_holds.KEEPING_LOOK_SECONDS", 0.01)


def hold_of(registry: MemoryRegistry, *states, lease_seconds: float = 60.0) -> tuple[ServerHold, Scripted]:
    starter = Scripted(registry, *states)
    return ServerHold(registry, "m", "me", lease_seconds, starter), starter


async def test_a_server_that_lost_its_supervisor_is_replaced_while_it_is_waited_for():
    registry = MemoryRegistry()
    hold, starter = hold_of(registry, (ServerState.FAILED, "server_failed"), (ServerState.READY, None))
    [record] = await hold.until_ready(10)
    assert len(starter.started) == 2 and record.id == starter.started[1]


async def test_one_that_ran_out_of_memory_is_not():
    registry = MemoryRegistry()
    hold, starter = hold_of(registry, (ServerState.FAILED, "server_out_of_memory"))
    with pytest.raises(ServerOutOfMemory, match="it ended") as raised:
        await hold.until_ready(10)
    assert raised.value.detail["log"].endswith("second")
    assert len(starter.started) == 1


async def test_codes_that_name_no_error_are_server_failed():
    registry = MemoryRegistry()
    [server_id] = await registry.add_servers("m", "here", 1)
    await registry.enter(server_id, ServerState.FAILED, error_code="crash", message="it ended by itself")
    error = error_of(await registry.server(server_id))
    assert isinstance(error, ServerFailed) and error.detail["code"] == "crash"
    assert "docmill serve m" in error.remedy


async def test_waiting_ends():
    registry = MemoryRegistry()
    hold, _ = hold_of(registry, (ServerState.STARTING, None))
    with pytest.raises(ServerNotReady, match=r"was ready within 0\.05 s"):
        await hold.until_ready(0.05)


async def test_a_database_that_is_away_is_waited_for():
    registry = Flaky()
    hold, _ = hold_of(registry, (ServerState.READY, None))
    registry.away = True
    waiting = asyncio.create_task(hold.until_ready(30))
    await asyncio.sleep(0)
    registry.away = False
    assert len(await waiting) == 1


async def test_replicas_come_and_go():
    registry = Flaky()
    hold, _ = hold_of(registry, (ServerState.READY, None), lease_seconds=0.03)
    [first] = await hold.until_ready(10)
    seen: asyncio.Queue[frozenset[UUID]] = asyncio.Queue()
    keeping = asyncio.create_task(hold.keep(lambda rows: seen.put_nowait(frozenset(each.id for each in rows))))

    async def until(ids: set[UUID]) -> None:
        async with asyncio.timeout(20):
            while await seen.get() != ids:
                pass

    second = await _replica(registry)
    await until({first.id, second})
    registry.away = True
    await asyncio.sleep(0)
    registry.away = False
    await registry.enter(first.id, ServerState.STOPPED)
    await until({second})
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    await hold.release()
    assert (await registry.server(second)).leases == 0


async def _replica(registry: MemoryRegistry) -> UUID:
    """Another server of the profile, as a supervisor with replicas has them."""
    [made] = await registry.add_servers("other", "here", 1)
    registry._servers[made] = dataclasses.replace(registry._servers[made], profile="m")
    await registry.enter(made, ServerState.READY)
    return made


async def test_what_was_given_up_is_remembered():
    registry = MemoryRegistry()
    hold, starter = hold_of(registry, (ServerState.READY, None))
    [record] = await hold.until_ready(10)
    await registry.request_stop(record.id, force=True)
    told = asyncio.Event()
    keeping = asyncio.create_task(hold.keep(lambda rows: told.set() if not rows else None))
    await registry.enter(record.id, ServerState.STOPPED)
    await asyncio.wait_for(told.wait(), 20)
    keeping.cancel()
    await asyncio.wait([keeping])
    assert hold.given_up is not None and hold.given_up.id == record.id
    assert len(starter.started) == 1


async def test_the_deployment_is_asked_once_and_its_end_is_told():
    registry = MemoryRegistry()
    asked: list[tuple[dict, str]] = []
    ends = [None, "Failed: no GPU"]

    async def ask(parameters, key):
        asked.append((parameters, key))

        async def ended():
            return ends.pop(0)

        return ended

    hold = ServerHold(registry, "m", "me", 60, StartsByDeployment("m", registry, ask))
    with pytest.raises(ServerNotReady, match="no GPU"):
        await hold.until_ready(10)
    [(parameters, key)] = asked
    assert parameters == {"profile": "m", "minutes": 1} and "m after none" in key
