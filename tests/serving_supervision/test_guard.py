"""Whatever dies, nothing is left: real processes, killed in every way."""

import asyncio
import os
import signal
import subprocess
import sys
from multiprocessing import shared_memory
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from supervised_server import pids_of

from docmill.failures import AccessDenied
from docmill.launching import Launch
from docmill.model_failures import VllmMissing
from serving.supervision.orphans import end_orphans, marked_processes
from serving.supervision.server_process import KEPT_LOG_BYTES, ServerProcess

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
linux = sys.platform == "linux"


def launch_of(tmp_path, *command):
    return Launch(command, {}, "http://127.0.0.1:1", "x", tmp_path / "server.log", "")


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


async def started(tmp_path, fifo, server_id, *more):
    launch = launch_of(tmp_path, sys.executable, "-S", str(PROGRAMS / "nasty_server.py"), str(fifo), *more)
    process = await ServerProcess.start(launch, server_id, inherited=os.environ, grace_seconds=0.2)
    return process, await written(fifo)


async def written(fifo):
    """The processes whose pids come through the FIFO."""
    text = await asyncio.wait_for(asyncio.to_thread(fifo.read_text), 20)
    pids = [int(pid) for pid in text.split()]
    assert len(pids) == 5
    return pids


def all_gone(pids):
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=20)
    return not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def parent(fifo, tmp_path, server_id):
    """A supervisor in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAMS / "nasty_parent.py"), str(fifo), str(tmp_path / "log"), str(server_id)],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


async def test_kill_9_of_the_supervisor(parent, fifo):
    pids = await written(fifo)
    pids.append(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    assert all_gone(pids)


async def test_sigstop_and_kill_9_of_the_supervisor(parent, fifo):
    pids = await written(fifo)
    pids.append(int(parent.stdout.readline()))
    for pid in pids[:-1]:
        os.kill(pid, signal.SIGSTOP)
    parent.kill()
    assert all_gone(pids)


async def test_kill_9_of_supervisor_and_guard_leaves_what_a_sweep_finds(parent, fifo, server_id):
    pids = await written(fifo)
    guard = int(parent.stdout.readline())
    assert end_orphans([]) == [] or server_id in {found.server_id for found in marked_processes()}
    os.kill(parent.pid, signal.SIGSTOP)
    os.kill(guard, signal.SIGKILL)
    parent.kill()
    parent.wait()
    assert end_orphans([server_id]) == []
    assert all_gone(pids[:1])  # the server itself died with its guard
    assert set(end_orphans([])) >= set(pids[1:4])
    assert pids_of(server_id) == []
    os.kill(pids[4], signal.SIGKILL)  # without an environment it cannot be told from a stranger


async def test_a_sweep_leaves_servers_alone_whose_supervisor_lives(parent, fifo, server_id):
    pids = await written(fifo)
    assert not set(end_orphans([])) & set(pids)
    assert all(psutil.pid_exists(pid) for pid in pids)


LEAVER = """
import os, sys, tempfile, time
from multiprocessing import resource_tracker, shared_memory
block = shared_memory.SharedMemory(create=True, size=4096)
resource_tracker.unregister(block._name, "shared_memory")  # its tracker is killed with the rest
open(os.path.join(tempfile.gettempdir(), "left"), "w").close()
with open(sys.argv[1], "w") as told:
    told.write(f"{tempfile.gettempdir()} {block.name}")
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["stop", "kill", "killed"])
async def test_what_a_killed_server_leaves_is_put_away(tmp_path, fifo, server_id, how):
    process = await ServerProcess.start(
        launch_of(tmp_path, sys.executable, "-c", LEAVER, str(fifo)), server_id, inherited=os.environ, grace_seconds=0.2
    )
    scratch, block = (await asyncio.wait_for(asyncio.to_thread(fifo.read_text), 20)).split()
    folder = Path(scratch)
    held = [folder / "left", *([Path("/dev/shm", block)] if linux else [])]
    assert all(each.exists() for each in held) and folder.name.startswith("docmill-")
    if how == "killed":
        os.kill(process.guard_pid, signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 20)
    else:
        await (process.stop(5) if how == "stop" else process.kill())
    assert gone(*held, folder)


@pytest.mark.skipif(not linux, reason="shared memory has no names elsewhere")
async def test_memory_that_somebody_else_has_stays(tmp_path, fifo, server_id):
    process = await ServerProcess.start(
        launch_of(tmp_path, sys.executable, "-c", LEAVER, str(fifo)), server_id, inherited=os.environ, grace_seconds=0.2
    )
    _, name = (await asyncio.wait_for(asyncio.to_thread(fifo.read_text), 20)).split()
    ours, named = shared_memory.SharedMemory(name), Path("/dev/shm", name)
    try:
        await process.kill()
        assert not gone(named)
    finally:
        ours.close()
        ours.unlink()


def gone(*paths: Path) -> bool:
    return not any(path.exists() for path in paths)


def put_away(path: Path) -> None:
    path.unlink(missing_ok=True)


async def test_with_the_guard_killed_the_folder_goes_too(tmp_path, fifo, server_id):
    process = await ServerProcess.start(
        launch_of(tmp_path, sys.executable, "-c", LEAVER, str(fifo)), server_id, inherited=os.environ, grace_seconds=0.2
    )
    scratch, block = (await asyncio.wait_for(asyncio.to_thread(fifo.read_text), 20)).split()
    folder, named = Path(scratch), Path("/dev/shm", block)
    os.kill(process.guard_pid, signal.SIGKILL)
    await asyncio.wait_for(process.wait(), 20)
    assert gone(folder)
    put_away(named)


async def test_kill_9_of_the_server(tmp_path, fifo, server_id):
    process, pids = await started(tmp_path, fifo, server_id)
    os.kill(process.pid, signal.SIGKILL)
    end = await asyncio.wait_for(process.wait(), 20)
    assert (end.exit_code, end.left) == (-9, ())
    assert all_gone(pids)


async def test_a_server_that_ends_by_itself(tmp_path, fifo, server_id):
    process, pids = await started(tmp_path, fifo, server_id, "--exit", "7")
    end = await asyncio.wait_for(process.wait(), 20)
    assert end.exit_code == 7
    assert all_gone(pids)


async def test_kill_9_of_the_guard(tmp_path, fifo, server_id):
    process, pids = await started(tmp_path, fifo, server_id)
    os.kill(process.guard_pid, signal.SIGKILL)
    end = await asyncio.wait_for(process.wait(), 20)
    assert end.exit_code is None
    assert all_gone(pids[:4])
    os.kill(pids[4], signal.SIGKILL)  # without an environment it cannot be told from a stranger


async def test_sigterm_to_the_guard(tmp_path, fifo, server_id):
    process, pids = await started(tmp_path, fifo, server_id)
    os.kill(process.guard_pid, signal.SIGTERM)
    end = await asyncio.wait_for(process.wait(), 20)
    assert end.exit_code == -15
    assert all_gone(pids)


@pytest.mark.parametrize("way", ["stop", "kill", "dump_and_kill"])
async def test_ends_on_command(tmp_path, fifo, server_id, way):
    process, pids = await started(tmp_path, fifo, server_id)
    end = await asyncio.wait_for(getattr(process, way)(*([] if way == "kill" else [0.3])), 30)
    assert end.exit_code == {"stop": -15, "kill": -9, "dump_and_kill": -6}[way]
    assert not process.running
    assert all_gone(pids)


async def test_stacks_are_written(tmp_path, fifo, server_id):
    process, pids = await started(tmp_path, fifo, server_id)
    os.kill(pids[1], signal.SIGSTOP)
    await process.dump_and_kill(10)
    log = (tmp_path / "server.log").read_text()
    assert "nasty_server.py" in log  # the server's own stack
    assert log.count("Fatal Python error: Aborted") == 1 + 3  # those with an environment that asks for it
    assert all(f"docmill: stacks of process {pid} " in log for pid in pids)


async def test_the_server_gets_signals_as_any_program_does(tmp_path, server_id):
    code = "import signal as s; print([n for n in (s.SIGINT, s.SIGTERM, s.SIGHUP) if s.getsignal(n) == s.SIG_IGN])"
    process = await ServerProcess.start(
        launch_of(tmp_path, sys.executable, "-c", code), server_id, inherited=os.environ
    )
    assert (await process.wait()).exit_code == 0
    assert (tmp_path / "server.log").read_text() == "[]\n"


async def test_what_cannot_be_started(tmp_path, server_id):
    with pytest.raises(VllmMissing):
        await ServerProcess.start(launch_of(tmp_path, "/nowhere/python"), server_id, inherited={})
    plain = tmp_path / "plain"
    plain.write_text("")
    plain.chmod(0o644)
    with pytest.raises(AccessDenied):
        await ServerProcess.start(launch_of(tmp_path, str(plain)), server_id, inherited={})


async def test_a_long_log_is_set_aside(tmp_path, server_id):
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        file.truncate(KEPT_LOG_BYTES + 1)
    process = await ServerProcess.start(
        launch_of(tmp_path, sys.executable, "-S", "-c", "print('new')"), server_id, inherited=os.environ
    )
    await process.wait()
    assert log.read_text() == "new\n"
    assert (tmp_path / "server.log.1").stat().st_size == KEPT_LOG_BYTES + 1


async def test_a_sweep_that_finds_nothing():
    assert end_orphans([uuid4()], patience_seconds=0.1) == []
