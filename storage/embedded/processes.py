"""Processes that outlive the command that started them, and how to find and end them again.

A process is known by its id **and** its start time, since ids are used again. A zombie counts as ended: in a container
whose first process reaps nobody, zombies stay for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

LOG_LIMIT_BYTES = 8 * 1024 * 1024
"""A log longer than this is set aside (one old one is kept) when its process starts."""

POLL_SECONDS = 0.05
TICK_SECONDS = 1.5
"""Start times come from the clock and from ticks since boot: the same process may differ by this much."""


@dataclass(frozen=True, slots=True)
class RecordedProcess:
    """A process as a state file names it: id and start time (seconds since the epoch)."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> RecordedProcess | None:
        """The process that has this id now; None where there is none (or only a zombie)."""
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            return cls(pid, process.create_time())
        except (psutil.Error, ValueError):
            return None

    def alive(self) -> bool:
        """Whether this very process still runs."""
        now = RecordedProcess.of(self.pid)
        return now is not None and abs(now.started - self.started) < TICK_SECONDS

    def uptime_seconds(self) -> float:
        """Seconds since its start."""
        return max(0.0, time.time() - self.started)


@dataclass(frozen=True, slots=True)
class Account:
    """An operating system user that a process runs as instead of ours."""

    name: str
    uid: int
    gid: int


def open_log(path: Path) -> int:
    """A descriptor to append to; a log over its limit becomes ``NAME.1`` first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
        path.replace(path.with_name(path.name + ".1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def log_tail(path: Path, lines: int = 5) -> str:
    """The last lines of a log, for an error's detail; empty where there is none."""
    with contextlib.suppress(OSError), path.open("rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - 8192))
        return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])
    return ""


class _Detached(subprocess.Popen[bytes]):
    """A child that is meant to outlive the object that started it: no ResourceWarning when that goes."""

    def __del__(self) -> None:
        if sys.is_finalizing():
            return  # the modules that are needed for it may be gone
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            super().__del__()


def spawn(
    command: Sequence[str | Path],
    *,
    log: Path,
    environment: Mapping[str, str],
    directory: Path | str = "/",
    account: Account | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that it outlives us and no Ctrl-C of our terminal reaches it.

    Raises:
        OSError: it cannot be started.
    """
    descriptor = open_log(log)
    try:
        return _Detached(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            cwd=str(directory),
            env=dict(environment),
            start_new_session=True,
            **as_account(account),
        )
    finally:
        os.close(descriptor)


def as_account(account: Account | None) -> dict[str, Any]:
    """The arguments of ``subprocess`` that make a child run as another user."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is so; False where it is not within the time."""
    deadline = time.monotonic() + seconds
    pause = POLL_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.3, POLL_SECONDS * 5)
    return True


def reap(pid: int) -> None:
    """Take the exit status of a child of ours, so that it does not stay a zombie. Others are left alone."""
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)


def signal_process(process: RecordedProcess, number: signal.Signals) -> None:
    """Send a signal to this very process; nothing happens where it has ended."""
    if process.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def end(processes: Iterable[RecordedProcess], *, grace_seconds: float, ask: signal.Signals = signal.SIGTERM) -> None:
    """End processes: ask first, then, after the grace, kill. Returns when none of them runs."""
    remaining = [process for process in processes if process.alive()]
    for process in remaining:
        signal_process(process, ask)

    def gone() -> bool:
        for process in remaining:
            reap(process.pid)
        return not any(process.alive() for process in remaining)

    if not until(gone, grace_seconds):
        for process in remaining:
            signal_process(process, signal.SIGKILL)
        until(gone, 5.0)


def session_members(leader: RecordedProcess) -> list[RecordedProcess]:
    """Who belongs to the session or process group that ``leader`` opened, whether or not the leader still lives.

    An id that now names a younger process with a session of its own is not ours: members must not be older than the
    leader, and where the leader's id is taken by somebody else, nobody is a member.
    """
    now = RecordedProcess.of(leader.pid)
    if now is not None and not leader.alive():
        return []
    members = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if leader.pid in (os.getsid(pid), os.getpgid(pid)):
                found = RecordedProcess.of(pid)
                if found is not None and found.started > leader.started - TICK_SECONDS:
                    members.append(found)
    return members


def processes_in(directory: Path, name: str) -> list[RecordedProcess]:
    """The processes called ``name…`` whose working directory is ``directory``."""
    wanted = os.path.realpath(directory)
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name().startswith(name) and process.cwd() == wanted:
                recorded = RecordedProcess.of(process.pid)
                if recorded is not None:
                    found.append(recorded)
    return found


def processes_marked(variable: str, value: str) -> list[RecordedProcess]:
    """The processes that were started with this variable in their environment: a server and all that it starts.

    Children inherit it, so it finds those whose parents have died and those that opened sessions of their own.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(variable) == value:
                recorded = RecordedProcess.of(process.pid)
                if recorded is not None:
                    found.append(recorded)
    return found
