"""A server's process, started under a guard: its pid, how it ended, and the ways to end it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import UUID

import psutil

from docmill.failures import AccessDenied, ConfigurationError, DocmillError
from docmill.launching import Launch
from docmill.model_failures import VllmMissing
from serving.supervision import guard
from serving.supervision.orphans import end_marked
from serving.supervision.surroundings import make_scratch, server_environment

KEPT_LOG_BYTES = 64 * 2**20
"""A log that is longer at a start becomes ``NAME.1``."""


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a server's process ended.

    Attributes:
        exit_code: its exit status; negative: the signal that killed it; None: unknown, since its guard was killed.
        left: pids that outlived SIGKILL (stuck in a driver). The GPU memory that they hold is not free.
    """

    exit_code: int | None
    left: tuple[int, ...] = ()


def _open_log(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > KEPT_LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    path.chmod(0o600)


def _not_started(launch: Launch, number: int, what: str) -> DocmillError:
    program = launch.command[0]
    if number == errno.ENOENT:
        return VllmMissing(f"{program} is not there")
    if number == errno.EACCES:
        return AccessDenied(f"{program} may not be executed", remedy="check its mode and serving.python")
    reason = os.strerror(number) if number else what
    return ConfigurationError(f"{program} could not be started: {reason}", remedy="check serving.python")


class ServerProcess:
    """A running server. :meth:`start` makes one; :meth:`wait` says how it ended, once nothing is left of it.

    Attributes:
        pid: of the server itself (vLLM's API server).
        started_at: its start, seconds since the epoch.
        guard_pid: of the guard, its parent.
        log_offset: where in the log its output begins, bytes.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, server_id: UUID, kill_seconds: float, scratch: Path
    ) -> None:
        self._process = process
        self._scratch = scratch
        self._server_id = server_id
        self._kill_seconds = kill_seconds
        self._end: asyncio.Task[ProcessEnd] | None = None
        self.pid = 0
        self.started_at = 0.0
        self.guard_pid = process.pid
        self.log_offset = 0

    @classmethod
    async def start(
        cls,
        launch: Launch,
        server_id: UUID,
        *,
        inherited: Mapping[str, str],
        grace_seconds: float = 3.0,
        kill_seconds: float = 60.0,
    ) -> Self:
        """Start the server.

        Args:
            launch: what to start.
            server_id: its row; the mark of all its processes.
            inherited: the environment to take from, see :func:`server_environment`.
            grace_seconds: between SIGTERM and SIGKILL for what a dead server or supervisor left behind.
            kill_seconds: after which a process that outlives SIGKILL is given up.

        Raises:
            VllmMissing: the program is not there.
            AccessDenied: it or the log may not be used.
            ConfigurationError: it could not be started for another reason.
        """
        try:
            _open_log(launch.log_path)
            offset = launch.log_path.stat().st_size
        except OSError as error:
            raise AccessDenied(f"the log {launch.log_path} cannot be written", remedy="check data_dir") from error
        try:
            scratch = make_scratch(server_id, inherited)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise AccessDenied(
                f"no temporary folder can be made: {reason}", remedy="check TMPDIR and the disk"
            ) from error
        # the marks in its environment name this guard a part of the server, too
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", guard.__file__, "--grace", f"{grace_seconds:g}", "--log", str(launch.log_path),
            "--scratch", str(scratch), "--", *launch.command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env=server_environment(launch, server_id, inherited, scratch), start_new_session=True,
        )  # fmt: skip
        self = cls(process, server_id, kill_seconds, scratch)
        self.log_offset = offset
        try:
            report = await self._report()
            if "started" not in report:
                await process.wait()
                shutil.rmtree(scratch, ignore_errors=True)
                raise _not_started(launch, int(report.get("not_started", 0)), str(report.get("what", "guard died")))
            self.pid = int(report["started"])
        except BaseException:
            self._order("kill")
            self._close()
            raise
        with contextlib.suppress(psutil.Error):
            self.started_at = psutil.Process(self.pid).create_time()
        self._end = asyncio.create_task(self._watch())
        return self

    @property
    def running(self) -> bool:
        """Whether anything of it is left, as far as is known."""
        return self._end is not None and not self._end.done()

    async def wait(self) -> ProcessEnd:
        """How the server ended, once its whole tree is gone. Cancelling leaves it running."""
        assert self._end is not None
        return await asyncio.shield(self._end)

    async def stop(self, grace_seconds: float) -> ProcessEnd:
        """SIGTERM to the server; SIGKILL to what is left after the grace."""
        self._order(f"stop {grace_seconds:g}")
        return await self._gone(grace_seconds)

    async def dump_and_kill(self, patience_seconds: float) -> ProcessEnd:
        """Let every Python process of the tree write its stacks into the log, then kill what is left."""
        self._order(f"dump {patience_seconds:g}")
        return await self._gone(patience_seconds)

    async def kill(self) -> ProcessEnd:
        """SIGKILL to the whole tree."""
        self._order("kill")
        return await self._gone(0.0)

    async def _gone(self, seconds: float) -> ProcessEnd:
        assert self._end is not None
        try:
            return await asyncio.wait_for(asyncio.shield(self._end), seconds + self._kill_seconds)
        except TimeoutError:
            pids = _tree_of(self.guard_pid)
            self._end.cancel()
            self._close()
            return ProcessEnd(None, pids)

    def _order(self, line: str) -> None:
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(line.encode() + b"\n")

    async def _report(self) -> dict[str, int | str | bool]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        found: dict[str, int | str | bool] = json.loads(line) if line.endswith(b"\n") else {}
        return found

    async def _watch(self) -> ProcessEnd:
        exit_code: int | None = None
        while report := await self._report():
            if "exited" in report:
                exit_code = int(report["exited"])
            if report.get("gone"):
                break
        self._close()
        await self._process.wait()
        # With the guard killed the server dies too (PR_SET_PDEATHSIG), but what it had started does not.
        left = await asyncio.to_thread(end_marked, self._server_id, patience_seconds=self._kill_seconds)
        await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)
        return ProcessEnd(exit_code, tuple(left))

    def _close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()


def _tree_of(pid: int) -> tuple[int, ...]:
    try:
        return tuple(child.pid for child in psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return ()
