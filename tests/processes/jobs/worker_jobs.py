"""What the tests let worker processes do."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from docmill.failures import EncryptedDocument

STATE: dict[str, object] = {}


def load_models(name: str) -> None:
    STATE["model"] = name
    STATE["loads"] = int(STATE.get("loads", 0)) + 1  # type: ignore[call-overload]


def state() -> dict[str, object]:
    return dict(STATE)


def fail_to_load() -> None:
    raise EncryptedDocument("the model is locked")


def never_load() -> None:
    threading.Event().wait()


def pid() -> int:
    return os.getpid()


def echo(value: object) -> object:
    return value


def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def wait_for(path: Path) -> int:
    """Until the file is there."""
    while not path.exists():
        time.sleep(0.005)
    return os.getpid()


def announce_and_spin(path: Path) -> None:
    """Write one's id, then turn in a circle that never gives way to another thread for long."""
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)
    while True:
        pass


def announce_and_spin_in_c(path: Path) -> None:
    """Write one's id, then hold the interpreter's lock in C for ever."""
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)
    ctypes.PyDLL(None).sleep(1_000_000)


def with_a_child(path: Path) -> None:
    """Start a program, write its id, and wait for it."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]) as child:
        path.with_suffix(".part").write_text(str(child.pid))
        path.with_suffix(".part").rename(path)


def kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crash() -> None:
    ctypes.string_at(0)


def leave() -> None:
    os._exit(3)


def exit_politely() -> None:
    raise SystemExit(3)


def hold(megabytes: int) -> int:
    STATE["held"] = bytearray(os.urandom(1024)) * (1024 * megabytes)
    return os.getpid()


def eat_memory() -> None:
    held = []
    while True:
        held.append(bytearray(os.urandom(1024)) * (1024 * 20))


def no_memory() -> None:
    raise MemoryError


def fail_by_name() -> None:
    raise EncryptedDocument("it asks for a password", detail={"tried": 2})


def fail_with_page_text() -> None:
    name = bytes.fromhex("4a616e65").decode()  # as read from a page: it stands in no source line
    raise ValueError(f"patient: {name} Roe")


class _Unpicklable:
    def __reduce__(self):
        raise TypeError("cannot be sent")


def fail_with_unpicklable_detail() -> None:
    raise EncryptedDocument("locked", detail={"handle": _Unpicklable()})


def unpicklable() -> object:
    return _Unpicklable()


def environment() -> dict[str, str]:
    return dict(os.environ)


def signals() -> tuple[bool, int, int]:
    """Whether SIGINT is ignored; the process' group and session."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN, os.getpgid(0), os.getsid(0)


def main_module() -> str:
    return repr(getattr(sys.modules["__main__"], "__file__", None))


def write(text: str) -> None:
    print(text)
    print(text, file=sys.stderr)
    os.write(1, text.encode())


def thread_count() -> int:
    from serving.worker import threads

    return threads()
