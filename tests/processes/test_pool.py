import asyncio
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from docmill.failures import EncryptedDocument, PageDeadlineExceeded, UnexpectedError, WorkerCrashed
from serving.processes import WorkerPool, usable_cores


def exists(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def appears(path: Path) -> int:
    """The number that the file holds, once another process has made it."""
    async with asyncio.timeout(30):
        while not path.exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.01)
    return int(path.read_text())  # noqa: ASYNC240


async def vanishes(pid: int) -> None:
    async with asyncio.timeout(30):
        while exists(pid):  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.01)


async def test_values_come_back_and_a_warm_process_is_used_again(jobs) -> None:
    async with WorkerPool(2) as pool:
        first = await pool.run(jobs.pid)
        assert first != os.getpid()
        assert await pool.run(jobs.echo, {"bytes": b"x" * 5_000_000, "path": Path("a")}) == {
            "bytes": b"x" * 5_000_000,
            "path": Path("a"),
        }
        assert await pool.run(partial(jobs.echo, value=(1, 2))) == (1, 2)
        assert await pool.run(jobs.pid) == first
    assert not exists(first)


async def test_no_more_jobs_at_a_time_than_processes(jobs, tmp_path: Path) -> None:
    async with WorkerPool(2) as pool:
        gate = tmp_path / "gate"
        running = [asyncio.create_task(pool.run(jobs.wait_for, gate)) for _ in range(5)]
        finished, _ = await asyncio.wait(running, timeout=0.5)
        assert not finished
        gate.touch()
        assert len(set(await asyncio.gather(*running))) == 2


async def test_the_initializer_runs_once_a_process(jobs) -> None:
    async with WorkerPool(1, initializer=jobs.load_models, initargs=("small",)) as pool:
        for _ in range(3):
            assert await pool.run(jobs.state) == {"model": "small", "loads": 1}


async def test_an_initializer_that_fails_or_hangs(jobs) -> None:
    async with WorkerPool(1, initializer=jobs.fail_to_load) as pool:
        for _ in range(2):
            with pytest.raises(EncryptedDocument, match="the model is locked"):
                await pool.run(jobs.pid)
    async with WorkerPool(1, initializer=jobs.never_load, start_seconds=0.2) as pool:
        with pytest.raises(WorkerCrashed, match="not ready"):
            await pool.run(jobs.pid)


@pytest.mark.parametrize("job", ["announce_and_spin", "announce_and_spin_in_c"])
async def test_a_deadline_kills_the_process(jobs, tmp_path: Path, job: str) -> None:
    async with WorkerPool(1) as pool:
        before = await pool.run(jobs.pid)
        with pytest.raises(PageDeadlineExceeded, match="not done within"):
            await pool.run(getattr(jobs, job), tmp_path / "pid", deadline_seconds=0.5)
        assert await pool.run(jobs.pid) != before
        await vanishes(before)


async def test_the_deadline_does_not_count_the_wait_for_a_process(jobs) -> None:
    async with WorkerPool(1) as pool:
        naps = [pool.run(jobs.nap, 0.2, deadline_seconds=0.5) for _ in range(5)]
        assert len(set(await asyncio.gather(*naps))) == 1


async def test_a_killed_process_takes_its_own_children_along(jobs, tmp_path: Path) -> None:
    async with WorkerPool(1) as pool:
        running = asyncio.create_task(pool.run(jobs.with_a_child, tmp_path / "pid", deadline_seconds=60))
        child = await appears(tmp_path / "pid")
        assert exists(child)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await vanishes(child)


async def test_cancelling_kills_a_running_job_and_drops_a_waiting_one(jobs, tmp_path: Path) -> None:
    async with WorkerPool(1) as pool:
        running = asyncio.create_task(pool.run(jobs.announce_and_spin, tmp_path / "pid"))
        waiting = asyncio.create_task(pool.run(jobs.announce_and_spin, tmp_path / "never"))
        worker = await appears(tmp_path / "pid")
        waiting.cancel()
        running.cancel()
        results = await asyncio.gather(running, waiting, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        await vanishes(worker)
        assert await pool.run(jobs.echo, "still works") == "still works"
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("job", "said"),
    [("kill_oneself", "SIGKILL"), ("crash", "SIGSEGV"), ("leave", "exit status 3")],
)
async def test_a_process_that_dies(jobs, job: str, said: str) -> None:
    async with WorkerPool(1) as pool:
        with pytest.raises(WorkerCrashed, match=said):
            await pool.run(getattr(jobs, job))
        assert await pool.run(jobs.echo, 1) == 1


async def test_a_death_does_not_touch_the_other_jobs(jobs, tmp_path: Path) -> None:
    async with WorkerPool(2) as pool:
        gate = tmp_path / "gate"
        other = asyncio.create_task(pool.run(jobs.wait_for, gate))
        for _ in range(3):
            with pytest.raises(WorkerCrashed):
                await pool.run(jobs.kill_oneself)
        gate.touch()
        assert await other > 0


async def test_a_process_that_died_while_idle_costs_nobody_a_job(jobs) -> None:
    async with WorkerPool(1) as pool:
        worker = await pool.run(jobs.pid)
        os.kill(worker, signal.SIGKILL)
        await vanishes(worker)
        assert await pool.run(jobs.pid) != worker


async def test_errors_come_back_as_themselves(jobs) -> None:
    async with WorkerPool(1) as pool:
        worker = await pool.run(jobs.pid)
        with pytest.raises(EncryptedDocument, match="it asks for a password") as caught:
            await pool.run(jobs.fail_by_name)
        assert caught.value.detail == {"tried": 2}
        assert await pool.run(jobs.pid) == worker


@pytest.mark.parametrize("job", ["fail_with_page_text", "unpicklable", "exit_politely", "fail_with_unpicklable_detail"])
async def test_foreign_errors_come_back_by_type_only(jobs, job: str, tmp_path: Path) -> None:
    async with WorkerPool(1, log_file=tmp_path / "log") as pool:
        with pytest.raises(UnexpectedError) as caught:
            await pool.run(getattr(jobs, job))
        assert "Jane" not in f"{caught.value} {caught.value.detail}"
        assert "type" in caught.value.detail
        assert await pool.run(jobs.echo, 1) == 1
    assert "Jane" not in (tmp_path / "log").read_text()


async def test_a_job_that_the_worker_cannot_import(jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    async with WorkerPool(1) as pool:
        await pool.run(jobs.pid)  # has the path of the moment it started
        monkeypatch.setattr(jobs.echo, "__module__", "worker_jobs_of_another_machine")
        monkeypatch.setitem(__import__("sys").modules, "worker_jobs_of_another_machine", jobs)
        with pytest.raises(UnexpectedError, match="ModuleNotFoundError"):
            await pool.run(jobs.echo, 1)


async def test_memory_that_runs_out(jobs) -> None:
    async with WorkerPool(1, memory_limit_bytes=200 * 2**20) as pool:
        worker = await pool.run(jobs.pid)
        with pytest.raises(WorkerCrashed, match="above its limit of 200 MiB"):
            await pool.run(jobs.eat_memory, deadline_seconds=60)
        again = await pool.run(jobs.pid)
        assert again != worker
        with pytest.raises(WorkerCrashed, match="ran out of memory"):
            await pool.run(jobs.no_memory)
        assert await pool.run(jobs.pid) != again


async def test_processes_are_replaced_after_so_many_jobs_and_so_much_memory(jobs) -> None:
    async with WorkerPool(1, recycle_after=3) as pool:
        ids = [await pool.run(jobs.pid) for _ in range(7)]
        assert len({*ids[:3]}) == len({*ids[3:6]}) == 1
        assert len({*ids}) == 3
    async with WorkerPool(1, recycle_above_bytes=120 * 2**20) as pool:
        thin = await pool.run(jobs.hold, 1)
        fat = await pool.run(jobs.hold, 150)
        assert thin == fat
        assert await pool.run(jobs.pid) != fat


async def test_closing_ends_running_jobs(jobs, tmp_path: Path) -> None:
    pool = WorkerPool(1)
    async with pool:
        running = asyncio.create_task(pool.run(jobs.announce_and_spin, tmp_path / "pid"))
        waiting = asyncio.create_task(pool.run(jobs.pid))
        worker = await appears(tmp_path / "pid")
    assert not exists(worker)
    with pytest.raises(WorkerCrashed, match="closed"):
        await running
    with pytest.raises(WorkerCrashed, match="closed"):
        await waiting
    with pytest.raises(WorkerCrashed, match="closed"):
        await pool.run(jobs.pid)


async def test_nothing_of_the_parent_reaches_the_worker(
    jobs, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    async with WorkerPool(1, log_file=log) as pool:
        assert await pool.run(jobs.main_module) == "None"
        ignores_interrupts, group, session = await pool.run(jobs.signals)
        await pool.run(jobs.write, "noise of a library")
    assert ignores_interrupts
    assert group != os.getpgid(0)
    assert session != os.getsid(0)
    assert capfd.readouterr() == ("", "")
    assert log.read_text().count("noise of a library") == 3


async def test_the_log_makes_its_folder_and_does_not_grow_for_ever(jobs, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "pages.log"
    async with WorkerPool(1, recycle_after=1, log_file=log) as pool:
        await pool.run(jobs.write, "x" * 3_000_000)  # thrice: more than 8 MiB
        assert log.stat().st_size > 8 * 2**20
        await pool.run(jobs.write, "short")
    assert log.read_text().count("short") == 3
    assert (tmp_path / "logs" / "pages.log.1").stat().st_size > 8 * 2**20


async def test_a_process_that_cannot_be_started(jobs, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with WorkerPool(1, log_file=tmp_path / "file" / "log") as pool:
        with pytest.raises(WorkerCrashed, match="cannot be started"):
            await pool.run(jobs.pid)


async def test_threads_are_shared_out(jobs) -> None:
    async with WorkerPool(1, threads=3) as pool:
        held = await pool.run(jobs.environment)
        assert {held[f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS", "MKL")} == {"3"}
        assert await pool.run(jobs.thread_count) == 3
    assert WorkerPool(1).threads == usable_cores()
    assert WorkerPool(1000).threads == 1


async def test_misuse(jobs) -> None:
    def in_main() -> None: ...

    in_main.__module__ = "__main__"
    with pytest.raises(ValueError, match="at least one"):
        WorkerPool(0)
    async with WorkerPool(1) as pool:
        with pytest.raises(ValueError, match="main module"):
            await pool.run(in_main)


async def test_many_jobs_among_deaths_and_deadlines(jobs) -> None:
    async with WorkerPool(2, recycle_after=7) as pool:

        async def one(number: int) -> object:
            if number % 10 == 3:
                return await pool.run(jobs.kill_oneself)
            if number % 25 == 7:
                return await pool.run(jobs.never_load, deadline_seconds=0.05)
            return await pool.run(jobs.echo, number)

        results = await asyncio.gather(*(one(n) for n in range(60)), return_exceptions=True)
    for number, result in enumerate(results):
        if number % 10 == 3:
            assert isinstance(result, WorkerCrashed)
        elif number % 25 == 7:
            assert isinstance(result, PageDeadlineExceeded)
        else:
            assert result == number


async def test_a_pool_in_a_loop_of_another_thread(jobs) -> None:
    """As in Prefect, where flows run in threads: the kernel must not take the worker when a helper thread ends."""

    async def work() -> tuple[int, int]:
        async with WorkerPool(1) as pool:
            return await pool.run(jobs.pid), await pool.run(jobs.nap, 0.3)

    first, second = await asyncio.to_thread(asyncio.run, work())
    assert first == second


def test_waiting_for_a_job_leaves_the_loop_free(jobs) -> None:
    async def work() -> int:
        ticks = 0
        async with WorkerPool(1) as pool:
            job = asyncio.create_task(pool.run(jobs.nap, 0.3))
            while not job.done():
                await asyncio.sleep(0.01)
                ticks += 1
        return ticks

    began = time.monotonic()
    assert asyncio.run(work()) > 3
    assert time.monotonic() > began
