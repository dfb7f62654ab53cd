"""What the embedded servers keep beside their data: ports, passwords, locks. All files are for the owner only."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docmill.failures import ConfigurationError

PORTS = range(20_000, 32_000)
"""Below the range that systems give to outgoing connections (Linux: from 32768), so that a port stays ours."""


def write_private(path: Path, text: str) -> None:
    """Write a file (mode 0600) whole: a reader sees the old or the new text, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    new.replace(path)


def read_state(path: Path) -> dict[str, Any]:
    """The state in a JSON file; empty where there is none or it is damaged (it can be made anew)."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Keep the state in a JSON file."""
    write_private(path, json.dumps(state, indent=1, sort_keys=True) + "\n")


def secret(path: Path) -> str:
    """The secret in this file; made (32 random letters and digits) where there is none yet."""
    if not path.exists():
        write_private(path, secrets.token_hex(16))
    return path.read_text().strip()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of this file: others on this machine wait. A killed holder lets go of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to {path.parent}: {error.strerror}",
            remedy="choose a data folder that you may write to: DOCMILL_DATA_DIR",
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def port_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port(*, also_above: tuple[int, ...] = (), avoid: set[int] | None = None) -> int:
    """A free port of 127.0.0.1, with the ports at these distances above it free too.

    Raises:
        ConfigurationError: none is to be had.
    """
    taken = avoid or set()
    for port in random.SystemRandom().sample(PORTS, k=500):
        wanted = [port, *(port + distance for distance in also_above)]
        if not taken.intersection(wanted) and all(port_free(each) for each in wanted):
            return port
    raise ConfigurationError(
        f"no free port between {PORTS.start} and {PORTS.stop} on 127.0.0.1",
        remedy="end some servers, or point docmill at your own Postgres and object store",
    )
