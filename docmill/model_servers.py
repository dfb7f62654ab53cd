"""Model servers as the ledger keeps them: their rows, who holds them, and the port to both.

States: ``starting → ready → (sleeping) → draining → stopped | failed``; a restart goes back to ``starting``. A row is
owned by one supervisor, which renews its heartbeat. A *lease* says that somebody needs the server; it ends by release
or expiry, and a server with live leases is neither put to sleep nor stopped, except by force.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

STALE_SECONDS = 60.0
"""A live row without a heartbeat for so long has lost its supervisor."""


DESCRIBED = frozenset(
    {
        "served_name",
        "model",
        "base_url",
        "config_hash",
        "phase",
        "progress",
        "pid",
        "pid_started",
        "gpus",
        "tensor_parallel_size",
        "max_model_len",
        "kv_cache_tokens",
        "vllm_version",
        "error_code",
        "message",
        "log_path",
        "metrics",
    }
)
"""What :meth:`ServerRegistry.describe` takes."""


class ServerState(StrEnum):
    """Where a server is in its life."""

    STARTING = "starting"
    READY = "ready"
    SLEEPING = "sleeping"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def live(self) -> bool:
        """Whether a supervisor owns it."""
        return self not in (ServerState.STOPPED, ServerState.FAILED)


class StopRequest(StrEnum):
    """What an operator asked for."""

    NONE = "none"
    DRAIN = "drain"  # once no lease is live
    FORCE = "force"  # now; running requests get the drain deadline


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One row of ``model_servers``, with the number of its live leases.

    Attributes:
        profile: name of the profile, or the model folder's path.
        served_name: what requests put into ``model``.
        base_url: ``http://host:port`` without ``/v1``; empty until the supervisor has chosen a port.
        phase: what a starting server is doing: ``preflight``, ``loading``, ``compiling``, ``capturing``, ``warming``…
        progress: 0 to 1 within the phase, None where unknown.
        pid, pid_started: the process that leads the server's group, and its start time (seconds since the epoch).
        metrics: the last scrape, see serving.supervision.metrics; at ``metrics_at``.
    """

    id: UUID
    profile: str
    served_name: str
    model: str
    base_url: str
    state: ServerState
    host: str
    config_hash: str
    created_at: datetime
    heartbeat_at: datetime
    phase: str | None = None
    progress: float | None = None
    pid: int | None = None
    pid_started: float | None = None
    gpus: tuple[int, ...] = ()
    tensor_parallel_size: int = 1
    max_model_len: int | None = None
    kv_cache_tokens: int | None = None
    vllm_version: str | None = None
    restarts: int = 0
    error_code: str | None = None
    message: str | None = None
    log_path: str | None = None
    stop_requested: StopRequest = StopRequest.NONE
    metrics: dict[str, Any] = field(default_factory=dict)
    metrics_at: datetime | None = None
    ready_at: datetime | None = None
    ended_at: datetime | None = None
    leases: int = 0


@dataclass(frozen=True, slots=True)
class ServerLease:
    """A hold on one server."""

    id: UUID
    server_id: UUID
    holder: str


@dataclass(frozen=True, slots=True)
class Acquired:
    """What :meth:`ServerRegistry.acquire` gave: leases on every usable server, and the row that the caller must start.

    ``to_start`` is the id of a new row in state ``starting`` (it is among the leases); None where somebody else has a
    server up or is starting one.
    """

    leases: tuple[ServerLease, ...]
    to_start: UUID | None = None


@dataclass(frozen=True, slots=True)
class Orders:
    """What a supervisor learns with each heartbeat.

    Attributes:
        leases: how many are live.
        idle_seconds: since the last live lease ended (or since the row was made); 0 while one is live.
        stop: what was asked for.
    """

    leases: int
    idle_seconds: float
    stop: StopRequest


@dataclass(frozen=True, slots=True)
class Restart:
    """Why a server was restarted, and what was in flight."""

    id: UUID
    server_id: UUID
    happened_at: datetime
    code: str
    message: str
    exit_code: int | None
    log_tail: str
    page_ids: tuple[UUID, ...]
    requests: int


class ServerRegistry(Protocol):
    """Rows and leases of model servers.

    Every method raises DatabaseUnavailable (transient) where Postgres cannot be reached. Methods of a supervisor on a
    row that has ended (reaped while the supervisor was frozen, say) raise LeaseLost: it must end its process.
    """

    # --- those who need a server ----------------------------------------------------------------------------------

    async def acquire(
        self, profile: str, holder: str, lease_seconds: float, *, start_on: str | None = None
    ) -> Acquired:
        """Leases on every server of the profile that is live, fresh and not about to stop.

        In one transaction under an advisory lock of the profile, so that of several callers one starts: where there is
        none and ``start_on`` names a host, a row in state ``starting`` is made there and leased. Rows with a stale
        heartbeat become ``failed`` on the way. A holder that has a lease on a server already gets that one, extended.
        """
        ...

    async def renew(self, leases: Sequence[ServerLease], lease_seconds: float) -> set[UUID]:
        """Extend leases; the ids of those that are gone (expired and cleared, or their server ended)."""
        ...

    async def release(self, leases: Sequence[ServerLease]) -> None:
        """Let go."""
        ...

    async def begin_request(self, request_id: UUID, lease: ServerLease, page_id: UUID | None) -> None:
        """Note that a request is being sent, for the page (None: for none).

        A second call for the same request moves the note. Nothing is noted where the lease is gone.
        """
        ...

    async def end_request(self, request_id: UUID) -> None:
        """The request was answered, or its caller gave it up."""
        ...

    async def crashes_of(self, page_id: UUID) -> int:
        """At how many restarts (crashes and hangs, any server) the page was in flight since it was last reopened."""
        ...

    # --- those who look -------------------------------------------------------------------------------------------

    async def server(self, server_id: UUID) -> ServerRecord:
        """One row.

        Raises:
            ServerUnknown: there is none.
        """
        ...

    async def servers(self, *, profile: str | None = None, live: bool = True) -> list[ServerRecord]:
        """Rows, newest first; with ``live=False`` ended ones as well."""
        ...

    async def holders(self, server_id: UUID) -> list[tuple[str, datetime]]:
        """Who has live leases on it, and until when; those who came first are first."""
        ...

    async def restarts(self, server_id: UUID) -> list[Restart]:
        """A server's restarts, newest first."""
        ...

    # --- operators ------------------------------------------------------------------------------------------------

    async def add_servers(self, profile: str, host: str, count: int) -> list[UUID]:
        """Rows in state ``starting`` for the caller to start.

        Raises:
            ServerAlreadyUp: one of the profile is live and fresh.
        """
        ...

    async def request_stop(self, server_id: UUID, *, force: bool = False) -> ServerRecord:
        """Ask the supervisor to end the server. No new lease is given from then on.

        Raises:
            ServerInUse: leases are live and force is not given; the message names the holders. Nothing is changed.
            ServerUnknown: there is no such row.
        """
        ...

    async def reap(self, *, stale_seconds: float = STALE_SECONDS) -> list[ServerRecord]:
        """Delete expired leases; live rows with a stale heartbeat become ``failed``. Returns those rows."""
        ...

    # --- a supervisor, on its own row -----------------------------------------------------------------------------

    async def assign_gpus(self, server_id: UUID, candidates: Sequence[int], count: int) -> tuple[int, ...]:
        """Take ``count`` of the candidate GPUs of the row's host that no other live row holds, lowest first.

        Under an advisory lock of the host. ``()`` where fewer are free (nothing is taken then).
        """
        ...

    async def describe(self, server_id: UUID, **columns: Any) -> None:
        """Set fields of the row: those that ``DESCRIBED`` names (base_url, pid, phase, metrics, message…).

        Setting ``metrics`` sets ``metrics_at``. Renews the heartbeat.

        Raises:
            UnexpectedError: another field is named.
        """
        ...

    async def heartbeat(self, server_id: UUID) -> Orders:
        """Say that the supervisor lives; learn what is wanted."""
        ...

    async def enter(
        self, server_id: UUID, state: ServerState, *, error_code: str | None = None, message: str | None = None
    ) -> None:
        """Enter a state; ``ready`` sets ready_at, ``stopped`` and ``failed`` set ended_at and drop the leases.

        error_code and message of the row become what is given. A row that drains goes on draining until it ends,
        whatever other state is entered: no lease may be given on it.
        """
        ...

    async def begin_drain(self, server_id: UUID, *, force: bool = False) -> bool:
        """Enter ``draining``, unless a lease is live (and not ``force``). Atomic with :meth:`acquire`."""
        ...

    async def record_restart(
        self, server_id: UUID, *, code: str, message: str, exit_code: int | None, log_tail: str
    ) -> Restart:
        """In one transaction: the restart with the pages that were in flight, ``restarts + 1``, state ``starting``.

        The requests that were in flight are cleared. A row that drains goes on draining. ``code`` and ``message``
        become the row's as well.
        """
        ...
