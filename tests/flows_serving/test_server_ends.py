"""Ends: asked for, refused, forced, and of those that nobody looks after."""

import asyncio
import os
import signal

import psutil
import pytest
from serving_place import Place, fault, kill

from docmill.model_failures import ServerFailed, ServerInUse
from docmill.model_servers import ServerState
from flows.launches import StartOptions
from flows.model_servers import model_server
from flows.reconciling import reconcile, untold_failures
from flows.server_ends import end_model_servers, model_servers_of, stop_server

pytestmark = pytest.mark.services


@pytest.fixture
def impatient(monkeypatch):
    """A supervisor counts as silent at once, however fresh its last heartbeat."""
    monkeypatch.setattr("flows.server_ends.SILENT_SECONDS", -1.0)


async def up(place: Place, options: StartOptions | None = None):
    async with model_server(settings=place.settings, options=options):
        return await place.one(ServerState.READY)


async def test_a_server_in_use_is_stopped_by_force_alone(place: Place):
    async with model_server(settings=place.settings, holder="the nightly run"):
        record = await place.one(ServerState.READY)
        with pytest.raises(ServerInUse, match="the nightly run"):
            await stop_server(place.registry, record)
        assert (await place.registry.server(record.id)).state is ServerState.READY
        told = []
        ended = await stop_server(place.registry, record, force=True, on_progress=told.append)
        assert ended.state is ServerState.STOPPED and told[-1].state is ServerState.STOPPED
        assert not place.processes(record.id)


async def test_nobody_starts_again_what_was_stopped(place: Place, monkeypatch):
    monkeypatch.setattr("flows.server_holds.KEEPING_LOOK_SECONDS", 0.1)
    async with model_server(settings=place.settings) as server:
        record = await place.one(ServerState.READY)
        await stop_server(place.registry, record, force=True)

        async def empty() -> bool:
            return not server.pool.servers

        await place.until(empty)
    assert len(await place.registry.servers(live=False)) == 1


async def test_a_free_server_ends_when_asked(place: Place):
    record = await up(place)
    assert (await stop_server(place.registry, record)).state is ServerState.STOPPED
    assert not place.processes(record.id)

    async def gone() -> bool:
        return not place.supervisors()

    await place.until(gone)


async def test_one_whose_supervisor_was_killed_is_stopped_all_the_same(place: Place, impatient):
    record = await up(place)
    [supervisor] = place.supervisors()
    kill(supervisor)
    ended = await stop_server(place.registry, record)
    assert ended.state is ServerState.STOPPED and "gone already" in (ended.message or "")
    assert not place.processes(record.id)


async def test_what_lost_supervisor_and_guard_is_found_and_ended(place: Place, impatient):
    record = await up(place, StartOptions(tensor_parallel_size=2))
    [supervisor] = place.supervisors()
    assert record.pid is not None
    guard = psutil.Process(record.pid).parent()
    assert guard is not None
    # stopped first, so that neither sees the other go
    for pid in (supervisor.pid, guard.pid):
        os.kill(pid, signal.SIGSTOP)
    kill(guard)
    kill(supervisor)
    assert place.processes(record.id), "the workers of a sharded model outlive the rest"

    findings = await reconcile(place.registry)
    assert {each.state for each in findings} == {"mended"}
    assert not place.processes(record.id)
    ended = await place.registry.server(record.id)
    assert ended.state is ServerState.FAILED and ended.error_code == ServerFailed.code
    again = await up(place)
    assert again.id != record.id


async def test_a_healthy_server_is_left_alone(place: Place):
    record = await up(place)
    [finding] = await reconcile(place.registry)
    assert (finding.state, finding.server) == ("ok", str(record.id))
    assert (await place.registry.server(record.id)).state is ServerState.READY


async def test_a_server_that_only_says_it_is_ready_is_trouble(place: Place):
    record = await up(place)
    os.kill(record.pid or 0, signal.SIGSTOP)
    try:
        findings = await asyncio.wait_for(reconcile(place.registry), 30)
        assert [each.state for each in findings] == ["trouble"]
        assert "/health" in findings[0].found
    finally:
        os.kill(record.pid or 0, signal.SIGCONT)


async def test_each_failure_is_told_once(place: Place):
    place.python.script({"start": "oom"})
    assert await untold_failures(place.settings, place.registry) == []
    with pytest.raises(Exception, match="memory"):
        await up(place)
    [told] = await untold_failures(place.settings, place.registry)
    assert told.error_code == "server_out_of_memory"
    assert await untold_failures(place.settings, place.registry) == []


async def test_down_drains_what_runs(place: Place):
    async with model_server(settings=place.settings):
        record = await place.one(ServerState.READY)
        said = []
        await asyncio.to_thread(end_model_servers, place.settings, say=said.append)
    assert said == ["model server tiny has ended"]
    assert (await place.registry.server(record.id)).state is ServerState.STOPPED
    assert not place.supervisors() and not place.processes(record.id)
    assert await model_servers_of(place.settings) == []


async def test_down_needs_no_database(place: Place):
    record = await up(place)
    away = place.settings.model_copy(
        update={"database": place.settings.database.model_copy(update={"url": None})}
    )  # an embedded one that was never started
    await asyncio.to_thread(end_model_servers, away)
    assert not place.supervisors() and not place.processes(record.id)


async def test_a_drain_lets_requests_finish(place: Place):
    from docmill.chat import ChatRequest

    place.python.script({"token_seconds": 0.05})
    async with model_server(settings=place.settings) as server:
        record = await place.one(ServerState.READY)
        asking = asyncio.create_task(server.chat.ask(ChatRequest(instruction="Read.", max_tokens=16)))

        async def running() -> bool:
            import httpx

            async with httpx.AsyncClient(trust_env=False) as client:
                return (await client.get(f"{record.base_url}/__state")).json()["requests"] > 1

        await place.until(running)
        await stop_server(place.registry, record, force=True)
        assert (await asking).text, "the answer came although the server was stopped meanwhile"
        await fault(record, "crash")  # nobody is there to hear it
