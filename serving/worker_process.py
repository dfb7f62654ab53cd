"""The parent's end of a worker process: start it, give it a job, see it die, kill it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

from docmill.failures import DocmillError, PageDeadlineExceeded, WorkerCrashed
from serving.worker import HEADER, Done, Taken, resident_bytes

_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from serving.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
_LOOK_SECONDS = 0.1  # how often a running job's memory is looked at
_LOG_BYTES = 8 * 2**20  # a larger log is put aside when the next process starts
_DEATH_SECONDS = 5.0  # how long a killed process may take to vanish


def packed(message: object) -> bytes:
    """A message as it goes over the socket."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(body)) + body


class JobNotTaken(WorkerCrashed):
    """The process was dead before the job began: another one can have it."""


class WorkerProcess:
    """One process and the socket to it."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.process = process
        self.jobs = 0
        self._taken = False
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, threads: int, log_file: Path | None) -> WorkerProcess:
        """A fresh interpreter that waits for jobs.

        Raises:
            WorkerCrashed: the system refuses another process.
        """
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as files:
            files.callback(theirs.close)
            try:
                log = files.enter_context(_log(log_file)) if log_file else subprocess.DEVNULL
                # Here and not in a helper thread: the kernel's parent-death signal is tied to the starting thread.
                process = subprocess.Popen(  # noqa: ASYNC220
                    _command(theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=_environment(threads),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,  # out of reach of the terminal's Ctrl-C; and its group can be killed whole
                )
            except OSError as error:
                ours.close()
                raise WorkerCrashed(f"a worker process cannot be started: {error.strerror}") from error
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=1 << 22)
        except BaseException:  # cancelled in between
            ours.close()
            process.kill()
            process.wait()
            raise
        return cls(process, reader, writer)

    @property
    def alive(self) -> bool:
        """Whether the process has not ended (reaps it where it has)."""
        return self.process.poll() is None

    async def call(self, job: bytes, deadline_seconds: float, memory_limit_bytes: int | None) -> Done:
        """Do a packed job.

        Raises:
            JobNotTaken: the process was dead already.
            PageDeadlineExceeded, WorkerCrashed: as they say; the caller then kills the process.
        """
        answer = asyncio.ensure_future(self._exchange(job))
        deadline = time.monotonic() + deadline_seconds
        look = _LOOK_SECONDS if memory_limit_bytes else deadline_seconds
        try:
            while True:
                left = deadline - time.monotonic()
                await asyncio.wait({answer}, timeout=max(0.0, min(look, left)))
                if answer.done():
                    break
                if time.monotonic() >= deadline:
                    raise PageDeadlineExceeded(f"not done within {deadline_seconds:g} s")
                held = resident_bytes(self.process.pid) if memory_limit_bytes else None
                if held is not None and memory_limit_bytes is not None and held > memory_limit_bytes:
                    raise WorkerCrashed(
                        f"the page's process took {held >> 20} MiB of memory, above its limit "
                        f"of {memory_limit_bytes >> 20} MiB"
                    )
            done = answer.result()
        finally:
            answer.cancel()
        if done is None:
            raise await self._how_it_died()
        return done

    async def _exchange(self, job: bytes) -> Done | None:
        """What came back; None where the process is gone or says what it should not."""
        self._taken = False
        try:
            self._writer.write(job)
            await self._writer.drain()
            self._taken = isinstance(await self._received(), Taken)
            message = await self._received()
        except Exception:  # closed, or no message of ours: either way it is of no more use
            return None
        return message if isinstance(message, Done) else None

    async def _received(self) -> object:
        (length,) = HEADER.unpack(await self._reader.readexactly(HEADER.size))
        return pickle.loads(await self._reader.readexactly(length))

    async def _how_it_died(self) -> DocmillError:
        await self._ended(within_seconds=1)
        code = self.process.poll()
        if not self._taken:
            return JobNotTaken("a worker process was gone before its job began")
        if code is None:
            return WorkerCrashed("the page's process closed its connection")
        if code < 0:
            with contextlib.suppress(ValueError):
                return WorkerCrashed(f"the page's process was ended by {signal.Signals(-code).name}")
        return WorkerCrashed(f"the page's process ended with exit status {code}")

    async def _ended(self, within_seconds: float) -> None:
        end = time.monotonic() + within_seconds
        while self.alive and time.monotonic() < end:  # noqa: ASYNC110 - waitpid has no event that works in any thread
            await asyncio.sleep(0.005)

    def kill(self) -> None:
        """Send SIGKILL to the process and what it started; close the socket. Returns at once."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the killed process has vanished and the socket is closed."""
        await self._ended(within_seconds=_DEATH_SECONDS)
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def _log(file: Path) -> BinaryIO:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and file.stat().st_size > _LOG_BYTES:  # one file of the past is kept
        file.replace(file.with_name(file.name + ".1"))
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    return os.fdopen(descriptor, "ab")


def _command(descriptor: int) -> list[str]:
    path = [str(Path(entry).resolve()) if entry else str(Path.cwd()) for entry in sys.path]
    arguments = [json.dumps(path), str(descriptor), str(os.getpid())]
    return [sys.executable, "-P", "-X", "faulthandler", "-c", _BOOT, *arguments]


def _environment(threads: int) -> dict[str, str]:
    """The parent's, with the threads of numeric libraries set before they load, and fewer malloc arenas."""
    names = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    chosen = {f"{name}_NUM_THREADS": str(threads) for name in names}
    chosen["OPENCV_FOR_THREADS_NUM"] = str(threads)
    return {**os.environ, **chosen, "MALLOC_ARENA_MAX": "2", "PYTHONUNBUFFERED": "1"}
