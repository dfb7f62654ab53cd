"""The inside of a worker process: receives jobs over a socket, does them one after the other, ends with its parent.

Started by :mod:`serving.processes` as a fresh interpreter, so nothing of the parent (its main module, threads, locks,
models) is in it. A message is an 8-byte big-endian length and that many bytes of pickle.

To the worker: ``(function, args, kwargs)``. From it, for each: ``Taken`` before the job and ``Done`` after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import queue
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmill.failures import DocmillError, UnexpectedError, WorkerCrashed, failure_of

HEADER = struct.Struct(">Q")
Job = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Taken:
    """The job has begun. A worker that dies before it says so was dead already: the job can go to another one."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a job: its pickled value, or the error; and the worker's resident bytes after it."""

    value: bytes | None
    error: DocmillError | None
    resident_bytes: int
    spent: bool = False  # the process should not be used again


def resident_bytes(pid: int | None = None) -> int | None:
    """Bytes of memory that a process holds; None where the system does not say (other processes outside Linux)."""
    try:
        pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        if pid is not None and pid != os.getpid():
            return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def threads() -> int:
    """How many threads a library should use in this process: what the pool chose, else 1."""
    try:
        return max(1, int(os.environ.get("OMP_NUM_THREADS", "1")))
    except ValueError:
        return 1


def _die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies (Linux); elsewhere the closed socket ends the worker."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with contextlib.suppress(OSError):  # if memory runs out, the kernel should take a worker and not the database
            Path("/proc/self/oom_score_adj").write_text("500")
    if os.getppid() != parent:
        os._exit(0)


def receive_exactly(link: socket.socket, count: int) -> bytes | None:
    """So many bytes, or None where the other side has closed."""
    data = bytearray()
    while len(data) < count:
        try:
            part = link.recv(min(count - len(data), 1 << 20))
        except OSError:
            return None
        if not part:
            return None
        data += part
    return bytes(data)


def _listen(link: socket.socket, jobs: queue.SimpleQueue[bytes]) -> None:
    """Pass on what comes; end the process at once, whatever it is doing, when the parent has closed or is gone."""
    while True:
        header = receive_exactly(link, HEADER.size)
        body = receive_exactly(link, HEADER.unpack(header)[0]) if header else None
        if body is None:
            os._exit(0)
        jobs.put(body)


def _send(link: socket.socket, message: object) -> None:
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        link.sendall(HEADER.pack(len(body)) + body)
    except OSError:
        os._exit(0)


def _as_docmill_error(error: BaseException) -> DocmillError:
    if isinstance(error, DocmillError):
        try:  # one that cannot be sent would be lost
            pickle.loads(pickle.dumps(error))
        except Exception:
            return UnexpectedError(error.message, remedy=error.remedy, detail={"type": type(error).__name__})
        return error
    if isinstance(error, MemoryError):
        return WorkerCrashed("the page's process ran out of memory")
    failure = failure_of(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return UnexpectedError(failure.message, detail={**failure.detail, "place": place})


def perform(body: bytes) -> Done:
    """Do one job. Whatever it raises comes back as a DocmillError, without the text of foreign errors."""
    try:
        job: Job = pickle.loads(body)
        function, args, kwargs = job
        value = pickle.dumps(function(*args, **kwargs), protocol=pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        if not isinstance(error, DocmillError):
            traceback.print_tb(error.__traceback__)
            print(f"{type(error).__module__}.{type(error).__qualname__}", file=sys.stderr)  # noqa: T201
        spent = isinstance(error, MemoryError) or not isinstance(error, Exception)
        return Done(None, _as_docmill_error(error), resident_bytes() or 0, spent=spent)
    return Done(value, None, resident_bytes() or 0)


def main(descriptor: int, parent: int) -> None:
    """Work until the parent closes the socket or dies.

    Args:
        descriptor: of the socket to the parent.
        parent: its process id.
    """
    _die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    link = socket.socket(fileno=descriptor)
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(link, jobs), daemon=True, name="docmill-parent-watch").start()
    while True:
        job = jobs.get()
        _send(link, Taken())
        _send(link, perform(job))
