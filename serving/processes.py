"""Worker processes that can be killed.

Rendering and OCR run foreign native code on files from anywhere: it may loop, crash or eat the memory. So it runs in
processes of its own with a deadline. A worker is a fresh interpreter (``subprocess``, not ``multiprocessing``): it
never imports the parent's main module, whatever that is (a Prefect flow-run engine, a console script), never forks a
process that has threads, has no resource tracker or queue threads, and talks over one socket. It ends with its parent,
even if that is killed -9, and Ctrl-C in the terminal does not reach it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, TypeVarTuple

from docmill.failures import PageDeadlineExceeded, WorkerCrashed
from serving.worker import Done
from serving.worker_process import JobNotTaken, WorkerProcess, packed

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def usable_cores() -> int:
    """Cores that this process may use: its affinity and, in a container, its cgroup's quota (rounded up)."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, -(-int(quota) // int(period)))
    return max(1, cores)


class WorkerPool:
    """So many worker processes, started when they are needed and kept warm.

    Use it as ``async with WorkerPool(2) as pool: value = await pool.run(function, argument, deadline_seconds=30)``.
    ``function`` must be importable by name in a fresh interpreter; arguments and value are pickled.

    Args:
        processes: how many jobs run at the same time; further ones wait.
        recycle_after: jobs after which a process is replaced; 0: never.
        recycle_above_bytes: resident memory above which a process is replaced once its job is done. None: three
            quarters of ``memory_limit_bytes`` where that is given, else never.
        memory_limit_bytes: resident memory at which a process is killed in the middle of a job (seen on Linux only).
        initializer, initargs: called in each process before its first job, to load models for instance.
        start_seconds: how long starting and the initializer may take.
        threads: for numeric libraries in each process; None: the machine's cores divided by ``processes``.
        log_file: where what libraries print goes; None: nowhere.
    """

    def __init__(
        self,
        processes: int,
        *,
        recycle_after: int = 200,
        recycle_above_bytes: int | None = None,
        memory_limit_bytes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[object, ...] = (),
        start_seconds: float = 120.0,
        threads: int | None = None,
        log_file: Path | None = None,
    ) -> None:
        if processes < 1:
            raise ValueError("a pool needs at least one process")
        self.processes = processes
        self.threads = threads or max(1, usable_cores() // processes)
        self._recycle_after = recycle_after
        if recycle_above_bytes is None and memory_limit_bytes is not None:
            recycle_above_bytes = memory_limit_bytes * 3 // 4
        self._recycle_above_bytes = recycle_above_bytes
        self._memory_limit_bytes = memory_limit_bytes
        self._initializer = (initializer, initargs) if initializer is not None else None
        self._start_seconds = start_seconds
        self._log_file = log_file
        self._slots = asyncio.Semaphore(processes)
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._dying: set[WorkerProcess] = set()
        self._open = False

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Kill every process and wait until they are gone. Jobs that still run raise WorkerCrashed."""
        self._open = False
        for worker in [*self._idle, *self._busy]:
            self._retire(worker)
        self._idle.clear()
        for worker in list(self._dying):
            await worker.gone()
        self._dying.clear()

    async def run(self, function: Callable[[*Ts], T], /, *args: *Ts, deadline_seconds: float = 120.0) -> T:
        """Call the function in a worker process and return what it returns.

        Cancelling kills the process (or, before it has one, drops the job).

        Args:
            function: what to call; keyword arguments go in a ``functools.partial``.
            args: its positional arguments.
            deadline_seconds: for the job itself; waiting for a process and starting it do not count.

        Raises:
            PageDeadlineExceeded: the deadline passed; the process was killed.
            WorkerCrashed: the process died or passed its memory limit.
            DocmillError: as the function raised it; any other exception as UnexpectedError with its type only.
        """
        if getattr(function, "__module__", None) == "__main__":
            raise ValueError(f"{function!r} lives in the main module, which worker processes do not import")
        job = packed((function, args, {}))
        async with self._slots:
            done = await self._done(job, deadline_seconds)
        if done.error is not None:
            raise done.error
        value: T = pickle.loads(done.value or b"")
        return value

    async def _done(self, job: bytes, deadline_seconds: float) -> Done:
        self._dying = {worker for worker in self._dying if worker.alive}
        while True:
            if not self._open:
                raise WorkerCrashed("the pool of processes is closed")
            warm = bool(self._idle)
            worker = self._idle.pop() if warm else await self._started()
            self._busy.add(worker)
            try:
                done = await worker.call(job, deadline_seconds, self._memory_limit_bytes)
            except BaseException as error:
                self._retire(worker)
                if isinstance(error, JobNotTaken) and warm and self._open:
                    continue  # it died while idle: nobody's job is lost
                if isinstance(error, WorkerCrashed) and not self._open:
                    raise WorkerCrashed("the pool of processes was closed") from None
                raise
            self._busy.discard(worker)
            worker.jobs += 1
            if not self._open or self._is_spent(worker, done):
                self._retire(worker)
            else:
                self._idle.append(worker)
            return done

    async def _started(self) -> WorkerProcess:
        worker = await WorkerProcess.start(self.threads, self._log_file)
        self._busy.add(worker)
        try:
            function, args = self._initializer or (_nothing, ())
            try:
                done = await worker.call(packed((function, args, {})), self._start_seconds, self._memory_limit_bytes)
            except PageDeadlineExceeded as error:
                raise WorkerCrashed(f"a worker process was not ready within {self._start_seconds:.0f} s") from error
            if done.error is not None:
                raise done.error
        except BaseException:
            self._retire(worker)
            raise
        return worker

    def _is_spent(self, worker: WorkerProcess, done: Done) -> bool:
        old = 0 < self._recycle_after <= worker.jobs
        fat = self._recycle_above_bytes is not None and done.resident_bytes > self._recycle_above_bytes
        return old or fat or done.spent

    def _retire(self, worker: WorkerProcess) -> None:
        self._busy.discard(worker)
        worker.kill()
        self._dying.add(worker)


def _nothing() -> None:
    """The initializer of a pool without one."""
