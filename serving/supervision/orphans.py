"""Processes of model servers, found by the mark in their environment; and the end of those that nobody looks after."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from uuid import UUID

import psutil

from serving.supervision.surroundings import SERVER_ID, SUPERVISOR, remove_scratch

_START_TOLERANCE_SECONDS = 3.0
"""A start time is counted from the boot time, which moves a little when the clock is set."""


@dataclass(frozen=True, slots=True)
class MarkedProcess:
    """A process that belongs to a model server."""

    pid: int
    server_id: UUID
    supervised: bool


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115
    except OSError:
        return ""


def _lives(mark: str) -> bool:
    pid, _, started = mark.partition(":")
    try:
        process = psutil.Process(int(pid))
        same = abs(process.create_time() - float(started)) < _START_TOLERANCE_SECONDS
        return bool(same) and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False


def marked_processes() -> Iterator[MarkedProcess]:
    """Processes of model servers that this user may look into, the guards among them.

    Those of containers are left out: the supervisor that they name is counted in another way there.
    """
    ours = _namespace(os.getpid())
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if SERVER_ID not in environment or process.status() == psutil.STATUS_ZOMBIE:
                continue
            server_id = UUID(environment[SERVER_ID])
        except (psutil.Error, ValueError, OSError):
            continue
        if _namespace(process.pid) == ours:
            yield MarkedProcess(process.pid, server_id, _lives(environment.get(SUPERVISOR, "")))


def _kill(pids: Collection[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def end_marked(server_id: UUID, *, patience_seconds: float = 10.0) -> list[int]:
    """SIGKILL every process of one server, until there is none; the pids of those that would not go."""
    due = time.monotonic() + patience_seconds
    while True:
        left = [found.pid for found in marked_processes() if found.server_id == server_id]
        if not left or time.monotonic() > due:
            if not left:
                remove_scratch(server_id)
            return left
        _kill(left)
        time.sleep(0.02)


def end_orphans(live: Collection[UUID], *, patience_seconds: float = 10.0) -> list[int]:
    """SIGKILL what is left of servers whose supervisor is gone; the pids of what was found.

    A guard sees to that itself; this is for when it was killed together with its supervisor. A process whose supervisor
    lives is left alone even if its id is not among the live ones: another docmill may have started it.

    Args:
        live: ids of servers that are not to be touched in any case.
        patience_seconds: how long to go on killing what comes up.
    """
    ended: dict[int, UUID] = {}
    due = time.monotonic() + patience_seconds
    while True:
        left = {p.pid: p.server_id for p in marked_processes() if not p.supervised and p.server_id not in live}
        ended |= left
        if not left or time.monotonic() > due:
            for server_id in set(ended.values()) - set(left.values()):
                remove_scratch(server_id)
            return list(ended)
        _kill(left)
        time.sleep(0.02)
