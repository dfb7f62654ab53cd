import asyncio
import os
import signal
import stat

import psutil
from supervised_server import pids_of

from docmill.model_servers import ServerState


async def test_a_server_becomes_ready_and_ends_when_asked(begin):
    stage = await begin(flags=("--tensor-parallel-size", "3"))
    record = await stage.until(ServerState.READY)
    assert record.base_url == stage.launch.base_url
    assert record.served_name == "scripted"
    assert record.config_hash == "hash"
    assert record.kv_cache_tokens == 347152
    assert (record.phase, record.progress, record.error_code) == (None, None, None)
    told = await stage.told()
    assert record.pid == told["pid"]
    assert set(told["worker_pids"]) < set(pids_of(stage.server_id))
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED
    assert stage.registry.states == [ServerState.READY, ServerState.DRAINING, ServerState.STOPPED]
    assert pids_of(stage.server_id) == []


async def test_ready_means_that_it_has_answered_about_a_picture(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    assert (await stage.told())["requests"] == 1


async def test_progress_of_the_start_is_told(begin):
    stage = await begin({"load_seconds": 1.5})
    await stage.until(ServerState.READY)
    phases = list(dict.fromkeys(phase for phase, _ in stage.progress))
    assert [phase for phase in phases if phase != "starting"] == [
        "loading", "compiling", "capturing", "warming", "ready"
    ]  # fmt: skip
    assert ("loading", 0.5) in stage.progress
    assert ("capturing", 0.5) in stage.progress
    figures = stage.supervisor.report.figures
    assert figures["weights_gib"] == 15.63
    assert figures["compile_seconds"] == 24.61
    assert figures["ready_seconds"] > 1


async def test_metrics_come_into_the_row(begin):
    stage = await begin(watch_seconds=0.02)
    await stage.until(ServerState.READY)
    before = stage.record.metrics.get("generation_tokens_total", 0)
    assert (await stage.ask(tokens=7)).status_code == 200
    record = await stage.registry.until(
        stage.server_id, lambda row: row.metrics.get("generation_tokens_total", 0) >= before + 7
    )
    assert record.metrics["generation_tokens_per_second"] > 0
    assert record.metrics_at is not None


async def test_the_log_is_for_its_owner_and_goes_on(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    assert stat.S_IMODE(stage.launch.log_path.stat().st_mode) == 0o600
    await stage.fault("crash")
    await stage.until(ServerState.READY, restarts=1)
    assert stage.log.count("Application startup complete") == 2


async def test_secrets_of_docmill_stay_out_of_the_server(begin):
    stage = await begin(launch={"api_key": "hidden", "environment": {"PYTHONPATH": "/nowhere"}})
    await stage.until(ServerState.READY)
    told = await stage.told()
    assert told["api_key"]
    names = set(told["environment"])
    assert {"HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "PYTHONFAULTHANDLER", "SPT_NOENV", "PATH"} <= names
    assert "PYTHONPATH" in names
    assert not {name for name in names if name.startswith(("AWS_", "PREFECT_", "DOCMILL_DATABASE"))}
    assert "VLLM_SERVER_DEV_MODE" not in names
    assert "hidden" not in " ".join(_command_line(pid) for pid in pids_of(stage.server_id))


def _command_line(pid: int) -> str:
    return " ".join(psutil.Process(pid).cmdline())


async def test_running_requests_finish_before_the_end(begin):
    stage = await begin({"token_seconds": 0.05, "tokens": 30})
    await stage.until(ServerState.READY)
    asked = asyncio.ensure_future(stage.ask(tokens=30))
    await stage.registry.until(stage.server_id, lambda row: row.metrics.get("requests_running") == 1)
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED
    answer = await asked
    assert answer.status_code == 200
    assert answer.json()["usage"]["completion_tokens"] == 30


async def test_a_drain_takes_no_longer_than_its_deadline(begin):
    stage = await begin(drain_seconds=0.3)
    await stage.until(ServerState.READY)
    await stage.fault("slow", token_seconds=1000)
    asked = asyncio.ensure_future(stage.ask())
    await stage.registry.until(stage.server_id, lambda row: row.metrics.get("requests_running") == 1)
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED
    assert isinstance((await asyncio.gather(asked, return_exceptions=True))[0], Exception)


async def test_a_second_signal_ends_the_drain(begin):
    stage = await begin(drain_seconds=1000)
    await stage.until(ServerState.READY)
    await stage.fault("slow", token_seconds=1000)
    asked = asyncio.ensure_future(stage.ask())
    await stage.registry.until(stage.server_id, lambda row: row.metrics.get("requests_running") == 1)
    stage.supervisor.drain()
    await stage.until(ServerState.DRAINING)
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED
    await asyncio.gather(asked, return_exceptions=True)


async def test_a_server_that_ignores_sigterm_ends_all_the_same(begin):
    stage = await begin({"ignore_sigterm": True}, flags=("--tensor-parallel-size", "2"), stop_grace_seconds=0.3)
    await stage.until(ServerState.READY)
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED
    assert pids_of(stage.server_id) == []


async def test_a_stop_while_it_starts(begin):
    stage = await begin({"never_ready": True})
    await stage.registry.until(stage.server_id, lambda row: row.pid is not None)
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED


async def test_a_stop_before_it_starts(begin):
    stage = await begin()
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED
    assert stage.supervisor.process is None


async def test_an_operator_s_stop(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    await stage.registry.request_stop(stage.server_id)
    assert await stage.ended() is ServerState.STOPPED
    assert stage.record.message == "stopped on request"


async def test_an_operator_s_force_despite_leases(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    await stage.lease()
    await stage.registry.request_stop(stage.server_id, force=True)
    assert await stage.ended() is ServerState.STOPPED


async def test_a_row_that_others_ended_ends_the_server(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    stage.registry.age(1000)
    ended = await stage.registry.reap()
    # the heartbeat may have come in between the two lines; then nothing was stale
    if not ended:
        await stage.registry.enter(stage.server_id, ServerState.FAILED, error_code="server_failed")
    assert await stage.ended() is ServerState.FAILED
    assert pids_of(stage.server_id) == []


async def test_a_database_that_is_away_ends_nothing(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    stage.registry.away = True
    for _ in range(3):
        assert (await stage.ask()).status_code == 200
    stage.registry.away = False
    beat = stage.record.heartbeat_at
    await stage.registry.until(stage.server_id, lambda row: row.heartbeat_at > beat)
    assert stage.record.restarts == 0
    assert stage.record.pid == (await stage.told())["pid"]


async def test_a_crash_while_the_database_is_away_is_recorded_later(begin):
    stage = await begin()
    record = await stage.until(ServerState.READY)
    stage.registry.away = True
    await stage.fault("crash")
    while stage.supervisor.process.running:
        await asyncio.wait_for(stage.supervisor.process.wait(), 20)
    stage.registry.away = False
    again = await stage.until(ServerState.READY, restarts=1)
    assert again.pid != record.pid


async def test_a_stop_while_the_database_is_away(begin):
    stage = await begin(farewell_seconds=0.1)
    await stage.until(ServerState.READY)
    stage.registry.away = True
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED
    assert pids_of(stage.server_id) == []


async def test_a_cancelled_supervisor_leaves_nothing(begin):
    stage = await begin(flags=("--tensor-parallel-size", "2"))
    await stage.until(ServerState.READY)
    stage.run.cancel()
    await asyncio.gather(stage.run, return_exceptions=True)
    assert stage.run.cancelled()
    assert pids_of(stage.server_id) == []
    assert stage.record.state is ServerState.STOPPED


async def test_sigterm_by_a_signal_handler(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stage.supervisor.drain)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        assert await stage.ended() is ServerState.STOPPED
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
