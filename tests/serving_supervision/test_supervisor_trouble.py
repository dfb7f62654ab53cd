import asyncio
import os
import signal
import socket
from uuid import uuid4

import psutil
import pytest
from supervised_server import pids_of

from docmill.model_servers import ServerState

HANGS = {"hang_seconds": 0.5, "probe_seconds": 0.2}


# --- crashes ------------------------------------------------------------------------------------------------------


async def test_a_crash_is_followed_by_a_restart(begin):
    stage = await begin()
    first = await stage.until(ServerState.READY)
    await stage.fault("crash", exit_code=7, log="RuntimeError: the cause")
    record = await stage.until(ServerState.READY, restarts=1)
    assert record.pid != first.pid
    assert record.error_code is None
    (restart,) = await stage.registry.restarts(stage.server_id)
    assert (restart.code, restart.exit_code) == ("crash", 7)
    assert "RuntimeError: the cause" in restart.log_tail


async def test_pages_in_flight_are_recorded(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    lease, page = await stage.lease(), uuid4()
    await stage.registry.begin_request(uuid4(), lease, page)
    await stage.fault("crash")
    await stage.until(ServerState.READY, restarts=1)
    (restart,) = await stage.registry.restarts(stage.server_id)
    assert restart.page_ids == (page,)
    assert await stage.registry.crashes_of(page) == 1


async def test_kill_9_of_the_engine_core(begin):
    stage = await begin(flags=("--tensor-parallel-size", "2"))
    await stage.until(ServerState.READY)
    told = await stage.told()
    os.kill(told["engine_pid"], signal.SIGKILL)
    await stage.until(ServerState.READY, restarts=1)
    assert not [pid for pid in told["worker_pids"] if psutil.pid_exists(pid)]
    assert (await stage.ask()).status_code == 200


async def test_kill_9_of_the_api_server(begin):
    stage = await begin(flags=("--tensor-parallel-size", "2"))
    record = await stage.until(ServerState.READY)
    os.kill(record.pid, signal.SIGKILL)
    await stage.until(ServerState.READY, restarts=1)
    (restart,) = await stage.registry.restarts(stage.server_id)
    assert (restart.code, restart.exit_code) == ("killed", -9)


async def test_kill_9_of_the_guard(begin):
    stage = await begin(flags=("--tensor-parallel-size", "2"))
    await stage.until(ServerState.READY)
    before = pids_of(stage.server_id)
    os.kill(stage.supervisor.process.guard_pid, signal.SIGKILL)
    await stage.until(ServerState.READY, restarts=1)
    assert not set(before) & set(pids_of(stage.server_id))


async def test_out_of_memory_while_it_works_is_named_and_restarted(begin):
    stage = await begin()
    await stage.until(ServerState.READY)
    await stage.fault("oom")
    await stage.until(ServerState.READY, restarts=1)
    (restart,) = await stage.registry.restarts(stage.server_id)
    assert restart.code == "server_out_of_memory"


async def test_a_crash_loop_ends_within_its_budget(begin):
    stage = await begin({"start": "crash", "exit_code": 3}, restart_budget=2)
    assert await stage.ended() is ServerState.FAILED
    record = stage.record
    assert record.restarts == 2
    assert record.error_code == "crash"
    assert "restarted 2 times within 30 minutes before" in record.message
    assert "RuntimeError: something odd" in record.message
    assert len((stage.folder / "script.json.starts").read_text().splitlines()) == 3


async def test_the_last_crash_counts_its_pages_too(begin):
    stage = await begin(restart_budget=0)
    await stage.until(ServerState.READY)
    lease, page = await stage.lease(), uuid4()
    await stage.registry.begin_request(uuid4(), lease, page)
    await stage.fault("crash")
    assert await stage.ended() is ServerState.FAILED
    assert await stage.registry.crashes_of(page) == 1


async def test_a_stop_while_it_waits_for_the_next_try(begin):
    stage = await begin({"start": "crash"}, backoff_seconds=1000, backoff_limit_seconds=1000)
    await stage.registry.until(stage.server_id, lambda row: row.phase == "restarting")
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED


# --- what a restart does not mend ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "code", "remedy"),
    [
        ("kv_cache", "not_enough_gpu_memory", "lower serving.max_model_len"),
        ("no_kv_cache", "not_enough_gpu_memory", "lower serving.max_model_len"),
        ("flag", "unsupported_flag", "docmill preflight"),
        ("architecture", "unsupported_model", "docmill serve --install"),
        ("port", "port_taken", "--port"),
        ("missing", "model_incomplete", "download"),
    ],
)
async def test_mistakes_end_at_the_first_start(begin, start, code, remedy):
    stage = await begin({"start": start})
    assert await stage.ended() is ServerState.FAILED
    assert (stage.record.error_code, stage.record.restarts) == (code, 0)
    assert remedy in stage.record.message


@pytest.mark.parametrize(("start", "code"), [("oom", "server_out_of_memory"), ("nccl", "nccl")])
async def test_the_same_trouble_at_two_starts_in_a_row_ends_it(begin, start, code):
    stage = await begin({"start": start})
    assert await stage.ended() is ServerState.FAILED
    assert (stage.record.error_code, stage.record.restarts) == (code, 1)


async def test_out_of_memory_at_one_start_only(begin):
    stage = await begin([{"start": "oom"}, {}])
    await stage.until(ServerState.READY, restarts=1)


async def test_killed_twice_while_it_starts(begin):
    stage = await begin({"start": "crash", "exit_code": -9})
    assert await stage.ended() is ServerState.FAILED
    # the last line of the log is a plain crash: the signal is what tells
    assert (stage.record.error_code, stage.record.restarts) == ("killed", 1)


async def test_the_remedies_of_out_of_memory_come_in_order(begin):
    stage = await begin({"start": "oom"})
    await stage.ended()
    message = stage.record.message
    remedies = ["max_num_seqs", "max_model_len", "gpu_memory_utilization", "quantised", "more GPUs"]
    places = [message.index(remedy) for remedy in remedies]
    assert places == sorted(places)


async def test_a_port_that_another_listens_on(begin):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        stage = await begin(launch={"base_url": f"http://127.0.0.1:{port}"})
        assert await stage.ended() is ServerState.FAILED
    assert stage.record.error_code == "port_taken"
    assert not stage.launch.log_path.exists()


async def test_a_program_that_is_not_there(begin):
    stage = await begin(launch={"command": ("/nowhere/python", "-m", "vllm", "--host", "127.0.0.1")})
    assert await stage.ended() is ServerState.FAILED
    assert stage.record.error_code == "vllm_missing"


async def test_another_served_name(begin):
    stage = await begin({"served_name": "another"})
    assert await stage.ended() is ServerState.FAILED
    assert stage.record.error_code == "served_name_unknown"
    assert "another, not scripted" in stage.record.message


async def test_a_wrong_key(begin):
    stage = await begin(flags=("--api-key", "other"), launch={"api_key": "mine"})
    assert await stage.ended() is ServerState.FAILED
    assert stage.record.error_code == "server_refused"


async def test_a_model_that_takes_no_pictures(begin):
    stage = await begin({"refuse_images": True})
    assert await stage.ended() is ServerState.FAILED
    assert stage.record.error_code == "configuration"
    assert "At most 0 image(s)" in stage.record.message


async def test_a_log_that_cannot_be_written(begin, tmp_path):
    (tmp_path / "file").write_text("")
    stage = await begin(launch={"log_path": tmp_path / "file" / "server.log"})
    assert await stage.ended() is ServerState.FAILED
    assert stage.record.error_code == "access_denied"


# --- hangs --------------------------------------------------------------------------------------------------------


async def test_a_hung_engine_is_seen_dumped_and_restarted(begin):
    stage = await begin(flags=("--tensor-parallel-size", "2"), **HANGS)
    await stage.until(ServerState.READY)
    before = pids_of(stage.server_id)
    await stage.fault("hang")
    await stage.until(ServerState.READY, restarts=1)
    restart = (await stage.registry.restarts(stage.server_id))[-1]
    assert (restart.code, restart.exit_code) == ("hang", None)
    assert stage.log.count("Fatal Python error: Aborted") >= 3  # API server, engine core, workers
    assert "be_engine" in stage.log
    assert not set(before) & set(pids_of(stage.server_id))
    assert (await stage.ask()).status_code == 200


async def test_a_hang_with_a_request_under_way(begin):
    stage = await begin(hang_seconds=0.5, probe_seconds=1000)
    await stage.until(ServerState.READY)
    await stage.fault("slow", token_seconds=1000)
    asked = asyncio.ensure_future(stage.ask())
    await stage.until(ServerState.READY, restarts=1)
    assert isinstance((await asyncio.gather(asked, return_exceptions=True))[0], Exception)
    assert (await stage.registry.restarts(stage.server_id))[-1].code == "hang"


async def test_a_server_that_answers_no_metrics(begin):
    stage = await begin(hang_seconds=0.5, http_seconds=0.2)
    await stage.until(ServerState.READY)
    await stage.fault("deaf")
    await stage.until(ServerState.STARTING, restarts=1)
    restart = (await stage.registry.restarts(stage.server_id))[-1]
    assert restart.code == "hang"
    assert "/metrics" in restart.message


async def test_a_quiet_server_is_probed_and_left_alone(begin):
    stage = await begin(hang_seconds=10, probe_seconds=0.05)
    await stage.until(ServerState.READY)
    tokens = stage.record.metrics.get("generation_tokens_total", 0)
    await stage.registry.until(stage.server_id, lambda row: row.metrics.get("generation_tokens_total", 0) >= tokens + 3)
    assert stage.record.restarts == 0


async def test_a_start_that_never_ends(begin):
    stage = await begin([{"never_ready": True}, {}], ready_seconds=1.0)
    await stage.registry.until(stage.server_id, lambda row: row.restarts >= 1)
    restart = (await stage.registry.restarts(stage.server_id))[-1]
    assert restart.code == "start_timeout"
    assert "serve_forever" in stage.log or "Fatal Python error: Aborted" in stage.log
