"""Parents of all kinds: killed, interrupted, run as a module, without a main guard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JOBS = Path(__file__).parent / "jobs"

PARENT = """
import asyncio, sys
sys.path[:0] = [{jobs!r}, {root!r}]
from pathlib import Path
import worker_jobs
from serving.processes import WorkerPool
print("main module runs", flush=True)

async def work():
    async with WorkerPool(2) as pool:
        folder = Path({folder!r})
        jobs = [pool.run(worker_jobs.{job}, folder / f"pid{{n}}", deadline_seconds=300) for n in (1, 2)]
        await asyncio.gather(*jobs)

try:
    asyncio.run(work())
except KeyboardInterrupt:
    sys.exit(130)
"""


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(what, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def started(tmp_path: Path, job: str) -> tuple[subprocess.Popen[str], list[int]]:
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(jobs=str(JOBS), root=str(ROOT), folder=str(tmp_path), job=job))
    parent = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell's background jobs ignore it, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    files = [tmp_path / "pid1", tmp_path / "pid2"]
    wait_until(lambda: all(file.exists() for file in files) or parent.poll() is not None)
    return parent, [int(file.read_text()) for file in files]


@pytest.mark.parametrize("job", ["announce_and_spin", "announce_and_spin_in_c"])
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path, job: str) -> None:
    parent, workers = started(tmp_path, job)
    parent.kill()
    output, _ = parent.communicate()
    wait_until(lambda: not any(exists(worker) for worker in workers))
    assert output.count("main module runs") == 1  # a worker never runs it


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_parent_leaves_no_worker_and_no_noise(tmp_path: Path, stop: signal.Signals) -> None:
    parent, workers = started(tmp_path, "announce_and_spin")
    os.killpg(parent.pid, stop)  # as a terminal does: the whole foreground group
    _, errors = parent.communicate(timeout=30)
    wait_until(lambda: not any(exists(worker) for worker in workers))
    assert errors == ""
    assert parent.returncode == (130 if stop is signal.SIGINT else -signal.SIGTERM)


def test_a_parent_run_as_a_module(tmp_path: Path) -> None:
    package = tmp_path / "engine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import asyncio, sys\n"
        f"sys.path[:0] = [{str(JOBS)!r}, {str(ROOT)!r}]\n"
        "import worker_jobs\n"
        "from serving.processes import WorkerPool\n"
        "async def work():\n"
        "    async with WorkerPool(1) as pool:\n"
        "        print(await pool.run(worker_jobs.main_module))\n"
        "print('engine runs')\n"
        "asyncio.run(work())\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "engine"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "engine runs\nNone\n", "")
