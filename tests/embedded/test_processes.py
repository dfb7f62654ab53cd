"""Finding and ending processes, also those of dead parents, and never a stranger."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage.embedded.processes import (
    LOG_LIMIT_BYTES,
    RecordedProcess,
    end,
    log_tail,
    processes_in,
    processes_marked,
    session_members,
    spawn,
    until,
)

SLEEP = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]
PARENT = [
    sys.executable,
    "-c",
    "import subprocess, sys, time\n"
    "child = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
    "subprocess.Popen(child); subprocess.Popen(child, start_new_session=True)\n"
    "print('up', flush=True); time.sleep(600)",
]
ENVIRONMENT = {"PATH": os.environ["PATH"], "MARK": "test-processes"}


def started(command: list[str], folder: Path, **more) -> tuple[subprocess.Popen, RecordedProcess]:
    log = folder / "log"
    child = spawn(command, log=log, environment={**ENVIRONMENT, "MARK": str(folder)}, **more)
    assert until(lambda: "up" in log_tail(log), 30)
    return child, RecordedProcess.of(child.pid)


def test_a_process_ends_when_asked(tmp_path):
    child, process = started(SLEEP, tmp_path)

    end([process], grace_seconds=10)

    assert not process.alive()
    child.wait()


def test_a_process_that_does_not_listen_is_killed(tmp_path):
    child, process = started(STUBBORN, tmp_path)

    end([process], grace_seconds=0.2)

    assert not process.alive()
    child.wait()


def test_a_zombie_has_ended(tmp_path):
    child, process = started(SLEEP, tmp_path)

    os.kill(child.pid, signal.SIGKILL)

    assert until(lambda: not process.alive(), 10)
    assert Path(f"/proc/{child.pid}").exists() or sys.platform != "linux"  # nobody has reaped it
    child.wait()


def test_an_id_that_is_used_again_is_a_stranger(tmp_path):
    child, process = started(SLEEP, tmp_path)
    earlier = RecordedProcess(process.pid, process.started - 100)

    end([earlier], grace_seconds=0.1)

    assert not earlier.alive()
    assert session_members(earlier) == []
    assert process.alive()
    end([process], grace_seconds=10)
    child.wait()


def test_children_of_a_dead_parent_are_found(tmp_path):
    child, process = started(PARENT, tmp_path)
    everyone = processes_marked("MARK", str(tmp_path))
    os.kill(child.pid, signal.SIGKILL)
    child.wait()

    in_session = session_members(process)
    marked = processes_marked("MARK", str(tmp_path))

    assert len(everyone) == 3
    assert len(in_session) == 1
    assert len(marked) == 2
    end(marked, grace_seconds=10)
    assert processes_marked("MARK", str(tmp_path)) == []


def test_processes_of_a_folder(tmp_path):
    sleeper = spawn(["sleep", "600"], log=tmp_path / "log", environment=ENVIRONMENT, directory=tmp_path)

    assert until(lambda: [each.pid for each in processes_in(tmp_path, "sleep")] == [sleeper.pid], 10)
    assert processes_in(tmp_path, "postgres") == []
    assert processes_in(tmp_path.parent, "sleep") == []
    end(processes_in(tmp_path, "sleep"), grace_seconds=10)
    sleeper.wait()


def test_it_has_a_session_of_its_own(tmp_path):
    child, process = started(SLEEP, tmp_path)

    assert os.getsid(child.pid) == child.pid
    end([process], grace_seconds=10)
    child.wait()


def test_a_long_log_is_set_aside(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"x" * (LOG_LIMIT_BYTES + 1))

    child, process = started(SLEEP, tmp_path)
    end([process], grace_seconds=10)
    child.wait()

    assert (tmp_path / "log.1").stat().st_size == LOG_LIMIT_BYTES + 1
    assert log.stat().st_size < 100
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("lines", [1, 3])
def test_the_end_of_a_log(tmp_path, lines):
    (tmp_path / "log").write_text("".join(f"line {n}\n" for n in range(5000)))

    assert log_tail(tmp_path / "log", lines).splitlines() == [f"line {n}" for n in range(5000 - lines, 5000)]
    assert log_tail(tmp_path / "none") == ""
