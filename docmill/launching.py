"""How a model server is started and reached, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Launch:
    """One server process.

    Attributes:
        command: the program and its arguments; never a secret.
        environment: variables set on top of the inherited ones (the API key among them: it is not shown).
        base_url: ``http://host:port`` where it will answer, without ``/v1``.
        served_name: what requests put into ``model``.
        log_path: its output is appended there.
        config_hash: of everything that shapes the server; two servers with the same hash are interchangeable.
        can_sleep: it was started with sleep mode.
    """

    command: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)
    base_url: str
    served_name: str
    log_path: Path
    config_hash: str
    can_sleep: bool = False
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that answers requests.

    Attributes:
        base_url: without ``/v1``.
        served_name: what requests put into ``model``; None: the first name that the server lists.
        server_id: its row; None for a server that others run.
    """

    base_url: str
    served_name: str | None = None
    api_key: str | None = field(default=None, repr=False)
    server_id: UUID | None = None
