"""``async with model_server(profile)``: who starts, who waits, who holds, what goes wrong."""

import asyncio
import json
import os
import signal
import sys

import pytest
from serving_place import QUESTION, Place, fault, kill

from docmill.failures import ServerNotReady
from docmill.model_failures import ModelIncomplete, PortTaken, ServerFailed, ServerOutOfMemory
from docmill.model_servers import ServerState
from flows.launches import StartOptions
from flows.model_servers import model_server
from flows.resources import open_resources
from storage.embedded.processes import RecordedProcess

pytestmark = pytest.mark.services


async def test_a_flow_that_needs_a_model_starts_it_and_lets_go_of_it(place: Place):
    place.python.script({"load_seconds": 1.0})
    told = []
    async with model_server(settings=place.settings, on_progress=told.append) as server:
        answer = await server.chat.ask(QUESTION)
        assert answer.text.startswith("A frame")
        record = await place.one(ServerState.READY)
        assert record.profile == "tiny" and record.vllm_version == "0.32.0" and record.leases == 1
        assert record.model.endswith("models/tiny") and record.max_model_len == 2048
        [(holder, _)] = await place.registry.holders(record.id)
        assert holder.split(":")[1] == str(os.getpid())
    assert (await place.registry.server(record.id)).leases == 0
    assert {each.state for each in told} == {ServerState.STARTING, ServerState.READY}
    assert place.supervisors(), "it stays warm"


async def test_three_flows_at_once_start_one_server(place: Place):
    place.python.script({"load_seconds": 0.5})

    async def work(number: int) -> str:
        async with model_server("tiny", settings=place.settings, holder=f"flow {number}") as server:
            return (await server.chat.ask(QUESTION)).served_by

    assert len(set(await asyncio.gather(*map(work, range(3))))) == 1
    assert len(await place.registry.servers(live=False)) == 1
    assert place.python.starts == 1


async def test_a_holder_that_is_killed_lets_go_by_expiry(place: Place):
    program = (
        "import asyncio\nfrom flows.model_servers import model_server\n"
        "async def main():\n    async with model_server(holder='doomed'):\n"
        "        print('held', flush=True)\n        await asyncio.sleep(600)\nasyncio.run(main())\n"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    assert await child.stdout.readline() == b"held\n"
    record = await place.one(ServerState.READY)
    assert [holder for holder, _ in await place.registry.holders(record.id)] == ["doomed"]
    os.kill(child.pid, signal.SIGKILL)
    await child.wait()

    async def free() -> bool:
        return not await place.registry.holders(record.id)

    await place.until(free)
    assert (await place.registry.server(record.id)).state is ServerState.READY


async def test_leases_are_renewed_for_as_long_as_they_are_needed(place: Place):
    async with model_server(settings=place.also(lease_seconds=2.0), holder="patient"):
        record = await place.one(ServerState.READY)
        [(_, first)] = await place.registry.holders(record.id)

        async def renewed() -> bool:
            [(_, until)] = await place.registry.holders(record.id)
            return (until - first).total_seconds() > 3

        await place.until(renewed)


async def test_cancelled_while_it_waits_it_lets_go(place: Place):
    place.python.script({"never_ready": True})

    async def work() -> None:
        async with model_server(settings=place.settings):
            raise AssertionError("it is never ready")

    task = asyncio.create_task(work())
    record = await place.one(ServerState.STARTING)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await place.registry.server(record.id)).leases == 0


async def test_a_crash_is_waited_out(place: Place):
    async with model_server(settings=place.settings) as server:
        record = await place.one(ServerState.READY)
        await fault(record, "crash")
        assert (await server.chat.ask(QUESTION)).text
        assert (await place.registry.server(record.id)).restarts == 1


async def test_a_supervisor_that_was_killed_leaves_nothing_and_is_replaced(place: Place, monkeypatch):
    monkeypatch.setattr("flows.server_holds.KEEPING_LOOK_SECONDS", 0.2)
    async with model_server(settings=place.settings) as server:
        record = await place.one(ServerState.READY)
        [supervisor] = place.supervisors()
        kill(supervisor)

        async def gone() -> bool:
            return not place.processes(record.id)

        await place.until(gone)
        await place.registry.reap(stale_seconds=0.1)
        assert (await server.chat.ask(QUESTION)).text, "the same flow goes on, with another server"
    rows = await place.registry.servers(live=False)
    assert [each.state for each in rows] == [ServerState.READY, ServerState.FAILED]


async def test_what_a_failed_start_died_of_is_its_named_error(place: Place):
    place.python.script({"start": "oom"})
    with pytest.raises(ServerOutOfMemory) as raised:
        async with model_server(settings=place.settings):
            raise AssertionError("it cannot start")
    assert "CUDA out of memory" in raised.value.detail["log"]
    record = await place.one(ServerState.FAILED, live=False)
    assert record.error_code == ServerOutOfMemory.code and record.leases == 0


async def test_a_crash_loop_ends_as_server_failed(place: Place):
    place.python.script({"start": "crash"})
    with pytest.raises(ServerFailed) as raised:
        async with model_server(settings=place.also(restart_budget=1)):
            raise AssertionError("it cannot start")
    assert raised.value.detail["log"]
    assert place.python.starts == 2


async def test_a_damaged_model_is_found_before_the_start(place: Place, tmp_path):
    (tmp_path / "models" / "tiny" / "model-00002-of-00002.safetensors").write_bytes(b"short")
    with pytest.raises(ModelIncomplete):
        async with model_server(settings=place.settings):
            raise AssertionError("it cannot start")
    record = await place.one(ServerState.FAILED, live=False)
    assert record.error_code == "model_incomplete" and "model-00002" in (record.message or "")
    assert place.python.starts == 0


async def test_a_port_that_is_taken_is_named(place: Place):
    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        with pytest.raises(PortTaken):
            async with model_server(settings=place.settings, options=StartOptions(port=port)):
                raise AssertionError("it cannot start")


async def test_a_supervisor_that_cannot_even_begin_is_no_riddle(place: Place, tmp_path, monkeypatch):
    broken = tmp_path / "broken.toml"
    broken.write_text("nonsense = 1\n")
    monkeypatch.setenv("DOCMILL_CONFIG", str(broken))
    with pytest.raises(Exception, match="supervisor ended at once") as raised:
        async with model_server(settings=place.settings):
            raise AssertionError("it cannot start")
    assert "nonsense" in json.dumps(raised.value.detail)


async def test_never_means_that_somebody_else_starts_it(place: Place):
    never = place.also(start="never")
    with pytest.raises(ServerNotReady, match=r"serving\.start is never"):
        async with model_server(settings=never):
            raise AssertionError("there is none")
    async with model_server(settings=place.settings), model_server(settings=never) as server:
        assert (await server.chat.ask(QUESTION)).text
    assert await place.registry.servers(live=False) == [await place.one(ServerState.READY)]


async def test_others_reach_a_server_with_its_key_alone(place: Place):
    wide = place.also(host="0.0.0.0")
    async with model_server(settings=wide) as server:
        assert (await server.chat.ask(QUESTION)).text
        record = await place.one(ServerState.READY)
    key_file = place.settings.data_dir / "model-servers" / "api-key"
    key = key_file.read_text()
    assert len(key) > 30 and key_file.stat().st_mode & 0o777 == 0o600
    shown = [" ".join(_command_line(each)) for each in (*place.processes(record.id), place.supervisors()[0].pid)]
    assert shown and key not in "".join(shown) + str(record)
    logs = place.settings.data_dir / "logs" / "model-servers"
    assert all(key not in each.read_text() for each in logs.iterdir())


def _command_line(pid: int) -> list[str]:
    import psutil

    return psutil.Process(pid).cmdline() if RecordedProcess.of(pid) else []


async def test_a_server_that_nobody_needs_goes_away_and_comes_back(place: Place):
    idle = place.also(idle_stop_seconds=0.5)
    async with model_server(settings=idle) as server:
        first = await place.one(ServerState.READY)
        assert (await server.chat.ask(QUESTION)).text
    ended = await place.one(ServerState.STOPPED, live=False)
    assert ended.id == first.id and not place.processes(first.id)
    async with model_server(settings=idle) as server:
        assert (await server.chat.ask(QUESTION)).text
        assert (await place.one(ServerState.READY)).id != first.id


async def test_all_tasks_of_a_run_share_one_hold(place: Place):
    async with open_resources() as world:

        async def work() -> str:
            async with world.model_server() as server:
                return (await server.chat.ask(QUESTION)).served_by

        async with world.model_server("tiny") as server:
            assert len(set(await asyncio.gather(*(work() for _ in range(5))))) == 1
            record = await place.one(ServerState.READY)
            assert len(await place.registry.holders(record.id)) == 1
            assert [each.url for each in server.pool.servers] == [record.base_url]
        assert await place.registry.holders(record.id) == []
        await work()
