"""Supervisors that were killed, those that are only slow, and those whose terminal is gone."""

import asyncio
import contextlib
import dataclasses
import os
import signal
import socket
from datetime import UTC, datetime, timedelta

import pytest
from memory_registry import MemoryRegistry
from serving_place import QUESTION, Place, kill

from console.server_runs import serve_detached
from docmill.model_servers import ServerState
from flows.launches import StartOptions
from flows.model_servers import model_server
from flows.server_ends import end_lost, model_servers_of, supervisor_is_gone
from flows.server_looks import servers_of
from flows.supervision import drained_by_signals


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("flows.server_ends.SILENT_SECONDS", -1.0)
    monkeypatch.setattr("flows.server_holds.KEEPING_LOOK_SECONDS", 0.1)


async def killed(place: Place):
    """A server whose supervisor was killed; its row still says that it is ready."""
    async with model_server(settings=place.settings):
        record = await place.one(ServerState.READY)
    [supervisor] = place.supervisors()
    kill(supervisor)
    assert (await place.registry.server(record.id)).state is ServerState.READY
    return record


@pytest.mark.services
async def test_the_next_who_needs_it_gets_another(place: Place, impatient):
    lost = await killed(place)
    async with model_server(settings=place.settings) as server:
        assert (await server.chat.ask(QUESTION)).text
    new, old = await place.registry.servers(live=False)
    assert (new.state, old.id, old.state) == (ServerState.READY, lost.id, ServerState.FAILED)
    assert not place.processes(lost.id)


@pytest.mark.services
@pytest.mark.parametrize("look", ["servers", "status"])
async def test_nobody_is_shown_a_server_that_is_gone(place: Place, impatient, look):
    lost = await killed(place)
    shown = await (servers_of(place.settings, live=True) if look == "servers" else model_servers_of(place.settings))
    assert shown == []
    assert (await place.registry.server(lost.id)).state is ServerState.FAILED
    assert not place.processes(lost.id)


@pytest.mark.services
async def test_who_holds_it_gets_another_without_waiting_for_a_stale_heartbeat(place: Place, impatient):
    async with model_server(settings=place.settings) as server:
        lost = await place.one(ServerState.READY)
        kill(place.supervisors()[0])

        async def gone() -> bool:  # until then it answers, for the guard lets it go gently
            return not place.processes(lost.id)

        await place.until(gone)
        assert (await server.chat.ask(QUESTION)).text
        assert (await place.one(ServerState.READY)).id != lost.id


@pytest.mark.services
async def test_an_operator_starts_another(place: Place, impatient, capsys):
    lost = await killed(place)
    await asyncio.sleep(0.2)  # the silence that the fixture asks for
    await serve_detached(place.settings, "tiny", 1, StartOptions())
    out = capsys.readouterr().out
    assert "already up" not in out and "serves tiny" in out
    assert (await place.one(ServerState.READY)).id != lost.id


async def test_one_that_is_slow_to_come_up_is_not_given_up():
    registry = MemoryRegistry()
    [server_id] = await registry.add_servers("m", socket.gethostname(), 1)
    row = await registry.server(server_id)

    def silent(seconds: float, pid: int | None):
        return dataclasses.replace(row, pid=pid, heartbeat_at=datetime.now(UTC) - timedelta(seconds=seconds))

    assert not supervisor_is_gone(silent(30, None)) and supervisor_is_gone(silent(90, None))
    assert not supervisor_is_gone(silent(5, 1)) and supervisor_is_gone(silent(30, 1))
    assert not supervisor_is_gone(dataclasses.replace(silent(90, 1), host="elsewhere"))
    assert not await end_lost(registry, silent(30, None)) and await end_lost(registry, silent(30, 1))
    after = await registry.server(server_id)
    assert (after.state, after.error_code) == (ServerState.FAILED, "server_failed")
    assert not await end_lost(registry, after)


class Asked:
    """Counts what it was asked."""

    drains = 0

    def drain(self) -> None:
        self.drains += 1


@pytest.mark.parametrize(("before", "drains"), [(signal.SIG_DFL, 1), (signal.SIG_IGN, 0)])
async def test_the_end_of_the_terminal_drains_but_under_nohup(before, drains):
    asked, told = Asked(), asyncio.Event()
    kept = signal.signal(signal.SIGHUP, before)
    try:
        with drained_by_signals(asked, told.set):
            os.kill(os.getpid(), signal.SIGHUP)
            if drains:
                await asyncio.wait_for(told.wait(), 10)
        assert asked.drains == drains
    finally:
        signal.signal(signal.SIGHUP, kept)


async def test_a_terminal_that_is_gone_does_not_keep_it_from_draining():
    def gone() -> None:
        said.set()
        raise OSError("no terminal")

    asked, said = Asked(), asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    with contextlib.ExitStack() as stack:
        stack.enter_context(drained_by_signals(asked, gone))
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(said.wait(), 10)
    assert asked.drains == 1
