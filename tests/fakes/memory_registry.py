"""The registry of model servers without a database: the same promises, one process, a clock that tests may move."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from docmill.failures import DatabaseUnavailable, LeaseLost, UnexpectedError
from docmill.model_failures import ServerAlreadyUp, ServerFailed, ServerInUse, ServerUnknown
from docmill.model_servers import (
    DESCRIBED,
    STALE_SECONDS,
    Acquired,
    Orders,
    Restart,
    ServerLease,
    ServerRecord,
    ServerState,
    StopRequest,
)


@dataclass
class _Lease:
    lease: ServerLease
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class _Request:
    server_id: UUID
    lease_id: UUID
    page_id: UUID | None
    started_at: datetime


class MemoryRegistry:
    """:class:`docmill.model_servers.ServerRegistry` in memory.

    Nothing in a method waits, so that of tasks in one event loop each sees the others' calls as a whole.

    Args:
        clock: tells the time; :meth:`age` moves what it tells.

    Attributes:
        away: while True every call raises DatabaseUnavailable, as if Postgres could not be reached.
    """

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or (lambda: datetime.now(UTC))
        self._moved = timedelta(0)
        self._servers: dict[UUID, ServerRecord] = {}
        self._last_leased: dict[UUID, datetime] = {}
        self._leases: dict[UUID, _Lease] = {}
        self._requests: dict[UUID, _Request] = {}
        self._restarts: list[Restart] = []
        self._crashes: dict[UUID, int] = {}
        self.away = False

    # --- for tests ------------------------------------------------------------------------------------------------

    def age(self, seconds: float) -> None:
        """Let so much time pass."""
        self._moved += timedelta(seconds=seconds)

    def reopen(self, page_id: UUID) -> None:
        """What reprocessing does to a page's count of crashes."""
        self._crashes.pop(page_id, None)

    def in_flight(self, server_id: UUID) -> list[UUID | None]:
        """The pages of the requests that are noted, oldest first."""
        return [each.page_id for each in self._requests.values() if each.server_id == server_id]

    # --- those who need a server ----------------------------------------------------------------------------------

    async def acquire(
        self, profile: str, holder: str, lease_seconds: float, *, start_on: str | None = None
    ) -> Acquired:
        self._awake()
        self._clear_expired()
        self._reap(STALE_SECONDS, lambda each: each.profile == profile)
        usable = [
            each
            for each in self._servers.values()
            if each.profile == profile
            and each.state.live
            and each.state is not ServerState.DRAINING
            and each.stop_requested is StopRequest.NONE
        ]
        started = None
        if not usable and start_on is not None:
            usable = [self._new(profile, start_on)]
            started = usable[0].id
        usable.sort(key=lambda each: (each.created_at, each.id))
        return Acquired(tuple(self._lease(each.id, holder, lease_seconds) for each in usable), started)

    async def renew(self, leases: Sequence[ServerLease], lease_seconds: float) -> set[UUID]:
        self._awake()
        gone = set()
        for each in leases:
            held = self._leases.get(each.id)
            if held is None or not self._servers[held.lease.server_id].state.live:
                gone.add(each.id)
            else:
                held.expires_at = self._now() + timedelta(seconds=lease_seconds)
        return gone

    async def release(self, leases: Sequence[ServerLease]) -> None:
        self._awake()
        for each in leases:
            self._drop_lease(each.id)

    async def begin_request(self, request_id: UUID, lease: ServerLease, page_id: UUID | None) -> None:
        self._awake()
        if lease.id in self._leases:
            self._requests[request_id] = _Request(lease.server_id, lease.id, page_id, self._now())

    async def end_request(self, request_id: UUID) -> None:
        self._awake()
        self._requests.pop(request_id, None)

    async def crashes_of(self, page_id: UUID) -> int:
        self._awake()
        return self._crashes.get(page_id, 0)

    # --- those who look -------------------------------------------------------------------------------------------

    async def server(self, server_id: UUID) -> ServerRecord:
        self._awake()
        return self._counted(self._known(server_id))

    async def servers(self, *, profile: str | None = None, live: bool = True) -> list[ServerRecord]:
        self._awake()
        found = [
            self._counted(each)
            for each in self._servers.values()
            if (profile is None or each.profile == profile) and (each.state.live or not live)
        ]
        return sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)

    async def holders(self, server_id: UUID) -> list[tuple[str, datetime]]:
        self._awake()
        return [(each.lease.holder, each.expires_at) for each in self._live_leases(server_id)]

    async def restarts(self, server_id: UUID) -> list[Restart]:
        self._awake()
        return [each for each in reversed(self._restarts) if each.server_id == server_id]

    # --- operators ------------------------------------------------------------------------------------------------

    async def add_servers(self, profile: str, host: str, count: int) -> list[UUID]:
        self._awake()
        self._reap(STALE_SECONDS, lambda each: each.profile == profile)
        for each in self._servers.values():
            if each.profile == profile and each.state.live:
                raise ServerAlreadyUp(f"a server of {profile} is {each.state} on {each.host} already")
        return [self._new(profile, host).id for _ in range(count)]

    async def request_stop(self, server_id: UUID, *, force: bool = False) -> ServerRecord:
        self._awake()
        record = self._known(server_id)
        held = [each.lease.holder for each in self._live_leases(server_id)]
        if not record.state.live:
            return self._counted(record)
        if held and not force:
            raise ServerInUse(f"the server of {record.profile} is held by {', '.join(held)}")
        self._clear_expired()
        if record.stop_requested is not StopRequest.FORCE:
            wanted = StopRequest.FORCE if force else StopRequest.DRAIN
            record = self._change(server_id, stop_requested=wanted)
        return self._counted(record)

    async def reap(self, *, stale_seconds: float = STALE_SECONDS) -> list[ServerRecord]:
        self._awake()
        self._clear_expired()
        return self._reap(stale_seconds, lambda _: True)

    # --- a supervisor, on its own row -----------------------------------------------------------------------------

    async def assign_gpus(self, server_id: UUID, candidates: Sequence[int], count: int) -> tuple[int, ...]:
        self._awake()
        host = self._owned(server_id).host
        self._reap(STALE_SECONDS, lambda each: each.host == host and each.id != server_id)
        taken = {
            gpu
            for each in self._servers.values()
            if each.host == host and each.id != server_id and each.state.live
            for gpu in each.gpus
        }
        free = sorted(set(candidates) - taken)
        if len(free) < count:
            return ()
        chosen = tuple(free[:count])
        self._change(server_id, gpus=chosen, heartbeat_at=self._now())
        return chosen

    async def describe(self, server_id: UUID, **columns: Any) -> None:
        self._awake()
        if unknown := sorted(set(columns) - DESCRIBED):
            raise UnexpectedError(f"a model server's row has no {', '.join(unknown)} to describe")
        self._owned(server_id)
        times = {"metrics_at": self._now()} if "metrics" in columns else {}
        if "gpus" in columns:
            columns["gpus"] = tuple(columns["gpus"])
        self._change(server_id, heartbeat_at=self._now(), **columns, **times)

    async def heartbeat(self, server_id: UUID) -> Orders:
        self._awake()
        record = self._owned(server_id)
        self._clear_expired()
        self._change(server_id, heartbeat_at=self._now())
        live = len(self._live_leases(server_id))
        since = max(record.created_at, self._last_leased.get(server_id, record.created_at))
        idle = 0.0 if live else max(0.0, (self._now() - since).total_seconds())
        return Orders(live, idle, record.stop_requested)

    async def enter(
        self, server_id: UUID, state: ServerState, *, error_code: str | None = None, message: str | None = None
    ) -> None:
        self._awake()
        record = self._owned(server_id)
        if not state.live:
            self._end(server_id, state, error_code, message)
            return
        if record.state is ServerState.DRAINING:
            state = ServerState.DRAINING
        times = {"ready_at": self._now()} if state is ServerState.READY else {}
        self._change(server_id, state=state, error_code=error_code, message=message, heartbeat_at=self._now(), **times)

    async def begin_drain(self, server_id: UUID, *, force: bool = False) -> bool:
        self._awake()
        record = self._owned(server_id)
        self._clear_expired()
        if record.state is ServerState.DRAINING:
            return True
        if self._live_leases(server_id) and not force:
            return False
        self._change(server_id, state=ServerState.DRAINING, heartbeat_at=self._now())
        return True

    async def record_restart(
        self, server_id: UUID, *, code: str, message: str, exit_code: int | None, log_tail: str
    ) -> Restart:
        self._awake()
        record = self._owned(server_id)
        self._clear_expired()
        requests = {key: each for key, each in self._requests.items() if each.server_id == server_id}
        for key in requests:
            del self._requests[key]
        pages = tuple(sorted({each.page_id for each in requests.values() if each.page_id is not None}))
        for page_id in pages:
            self._crashes[page_id] = self._crashes.get(page_id, 0) + 1
        restart = Restart(uuid4(), server_id, self._now(), code, message, exit_code, log_tail, pages, len(requests))
        self._restarts.append(restart)
        self._change(
            server_id,
            restarts=record.restarts + 1,
            state=ServerState.DRAINING if record.state is ServerState.DRAINING else ServerState.STARTING,
            phase=None,
            progress=None,
            error_code=code,
            message=message,
            heartbeat_at=self._now(),
        )
        return restart

    # --- inside ---------------------------------------------------------------------------------------------------

    def _awake(self) -> None:
        if self.away:
            raise DatabaseUnavailable("no connection to Postgres")

    def _now(self) -> datetime:
        return self._clock() + self._moved

    def _new(self, profile: str, host: str) -> ServerRecord:
        now = self._now()
        record = ServerRecord(
            id=uuid4(),
            profile=profile,
            served_name="",
            model="",
            base_url="",
            state=ServerState.STARTING,
            host=host,
            config_hash="",
            created_at=now,
            heartbeat_at=now,
        )
        self._servers[record.id] = record
        return record

    def _known(self, server_id: UUID) -> ServerRecord:
        record = self._servers.get(server_id)
        if record is None:
            raise ServerUnknown(f"there is no model server {server_id}")
        return record

    def _owned(self, server_id: UUID) -> ServerRecord:
        record = self._servers.get(server_id)
        if record is None or not record.state.live:
            raise LeaseLost(f"the row of model server {server_id} has ended", remedy="end its process")
        return record

    def _change(self, server_id: UUID, **changes: Any) -> ServerRecord:
        record = dataclasses.replace(self._servers[server_id], **changes)
        self._servers[server_id] = record
        return record

    def _counted(self, record: ServerRecord) -> ServerRecord:
        return dataclasses.replace(record, leases=len(self._live_leases(record.id)))

    def _lease(self, server_id: UUID, holder: str, seconds: float) -> ServerLease:
        now = self._now()
        until = now + timedelta(seconds=seconds)
        for each in self._leases.values():
            if each.lease.server_id == server_id and each.lease.holder == holder:
                each.expires_at = until
                return each.lease
        lease = ServerLease(uuid4(), server_id, holder)
        self._leases[lease.id] = _Lease(lease, now, until)
        return lease

    def _live_leases(self, server_id: UUID) -> list[_Lease]:
        now = self._now()
        found = [each for each in self._leases.values() if each.lease.server_id == server_id and each.expires_at > now]
        return sorted(found, key=lambda each: (each.created_at, each.lease.holder))

    def _drop_lease(self, lease_id: UUID) -> None:
        held = self._leases.pop(lease_id, None)
        if held is not None:
            server_id = held.lease.server_id
            ended = min(self._now(), held.expires_at)
            self._last_leased[server_id] = max(ended, self._last_leased.get(server_id, ended))
        self._requests = {key: each for key, each in self._requests.items() if each.lease_id != lease_id}

    def _clear_expired(self) -> None:
        now = self._now()
        for lease_id in [key for key, each in self._leases.items() if each.expires_at <= now]:
            self._drop_lease(lease_id)

    def _reap(self, stale_seconds: float, which: Callable[[ServerRecord], bool]) -> list[ServerRecord]:
        limit = self._now() - timedelta(seconds=stale_seconds)
        stale = [e for e in self._servers.values() if e.state.live and e.heartbeat_at <= limit and which(e)]
        return [
            self._end(
                each.id,
                ServerState.FAILED,
                ServerFailed.code,
                f"no sign of life from its supervisor on {each.host} for more than {stale_seconds:g} s",
            )
            for each in stale
        ]

    def _end(self, server_id: UUID, state: ServerState, code: str | None, message: str | None) -> ServerRecord:
        for lease_id in [key for key, each in self._leases.items() if each.lease.server_id == server_id]:
            self._drop_lease(lease_id)
        return self._change(server_id, state=state, error_code=code, message=message, ended_at=self._now())
