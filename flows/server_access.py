"""How model servers of this host are reached: their key, and the address that others see."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import random
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from docmill.failures import AccessDenied, ConfigurationError
from docmill.model_servers import ServerRecord
from docmill.settings import Settings
from storage.embedded.state import PORTS

KEY_FILE = Path("model-servers") / "api-key"
SOMEWHERE = ("192.0.2.1", 9)
"""An address of nobody (RFC 5737). Asked which of our addresses would reach it; nothing is sent."""


def is_loopback(host: str) -> bool:
    """Whether only this host reaches what listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def reachable(record: ServerRecord) -> bool:
    """Whether this host can ask the server: one that listens on loopback is there for its own host alone."""
    return record.host == socket.gethostname() or not is_loopback(urlsplit(record.base_url).hostname or "")


def refuse_unreachable(records: Sequence[ServerRecord]) -> None:
    """Raise where there are servers, and this host can ask none of them.

    Raises:
        ConfigurationError: naming the host and what to set there.
    """
    if records and not any(map(reachable, records)):
        first = records[0]
        raise ConfigurationError(
            f"the server of {first.profile} runs on {first.host} and listens on {first.base_url}, which only "
            f"{first.host} reaches",
            remedy=f"set serving.host on {first.host} to 0.0.0.0 or an address that others reach, and start it again",
        )


def server_key(settings: Settings) -> str | None:
    """The key that servers are started with: the settings', else one of our own where others can reach them.

    That one is made once, in a file of the data folder that only its owner reads.

    Raises:
        AccessDenied: the file cannot be written or read.
    """
    given = settings.serving.api_key
    if given is not None:
        return given.get_secret_value()
    if is_loopback(settings.serving.host):
        return None
    path = settings.data_dir / KEY_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            # whole or not at all, and never readable by others
            part = path.with_name(f"{path.name}.{os.getpid()}")
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(32))
            try:
                os.link(part, path)
            finally:
                part.unlink()
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise AccessDenied(
            f"the key of model servers cannot be kept in {path}: {error.strerror}", remedy="check data_dir"
        ) from error


def client_key(settings: Settings) -> str | None:
    """The key to send: the settings', else the one that servers of this data folder were started with."""
    given = settings.serving.api_key
    if given is not None:
        return given.get_secret_value()
    with contextlib.suppress(OSError):
        return (settings.data_dir / KEY_FILE).read_text(encoding="ascii").strip() or None
    return None


def base_url(host: str, port: int) -> str:
    """Where others reach a server that listens on ``host``; every address (0.0.0.0, ::) is no place to go to."""
    name = _own_name() if host in ("0.0.0.0", "::", "") else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _own_name() -> str:
    """The host's name where it leads here from elsewhere too, else its address towards the outside."""
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        found = {str(each[4][0]) for each in socket.getaddrinfo(name, None)}
        if found and not any(is_loopback(address) for address in found):
            return name
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(SOMEWHERE)
        return str(probe.getsockname()[0])
    return "127.0.0.1"


def free_ports(host: str, count: int) -> list[int]:
    """Ports that nothing listens on, each another one.

    Raises:
        OSError: the address is none of this host's.
    """
    address = "127.0.0.1" if host == "localhost" else host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports: list[int] = []
    # outgoing connections never get one of these while a server is down for a moment
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError(errno.EADDRINUSE, "every port is taken")
