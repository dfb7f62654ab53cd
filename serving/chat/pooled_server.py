"""One server as the pool sees it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from docmill.failures import DocmillError, RequestTimeout
from docmill.launching import Endpoint
from docmill.model_servers import ServerLease
from serving.chat.circuit import Circuit, CircuitState
from serving.chat.pool_timings import PoolTimings


@dataclass(frozen=True, slots=True)
class PoolMember:
    """An endpoint, with the caller's lease on it where it is one of docmill's own servers."""

    endpoint: Endpoint
    lease: ServerLease | None = None

    @property
    def key(self) -> object:
        """Two members with the same key are the same server."""
        return self.endpoint.base_url, self.endpoint.served_name, self.endpoint.server_id


@dataclass(frozen=True, slots=True)
class EndpointState:
    """What is known of a server, for people.

    Attributes:
        healthy: None before the first check.
        outstanding: requests of this process that it works on.
        models: the names that it lists.
    """

    base_url: str
    served_name: str | None
    healthy: bool | None
    outstanding: int
    circuit: CircuitState
    last_error: str | None
    models: tuple[str, ...]


class PooledServer:
    """One server of a pool: what it serves, how it fares, what it works on. Times are of the monotonic clock."""

    def __init__(self, member: PoolMember, timings: PoolTimings) -> None:
        self.key = member.key
        self.member = member
        self.circuit = Circuit(threshold=timings.failures, longest_seconds=timings.longest_backoff_seconds)
        self.healthy: bool | None = None
        self.models: tuple[str, ...] = ()
        self.outstanding = 0
        self.turn = 0
        self.alone = False  # a request that was in flight at a crash is at it
        self.rests_until = 0.0
        self.last_error: DocmillError | None = None
        self.suspected = asyncio.Event()
        self.comebacks = 0  # how often it became well
        self._timings = timings

    @property
    def endpoint(self) -> Endpoint:
        """How it is reached."""
        return self.member.endpoint

    @property
    def url(self) -> str:
        """Its base URL."""
        return self.member.endpoint.base_url

    @property
    def model(self) -> str:
        """What a request puts into ``model``."""
        return self.endpoint.served_name or self.models[0]

    def fit(self, now: float) -> bool:
        """Whether a request may go to it."""
        return bool(self.healthy) and self.circuit.admits and now >= self.rests_until

    def begin(self, turn: int, *, alone: bool) -> bool:
        """A request goes to it; whether it does so on trial."""
        self.turn = turn
        self.outstanding += 1
        self.alone |= alone
        return self.circuit.begin()

    def end(self, *, alone: bool, on_trial: bool) -> None:
        """The request ended, one way or the other."""
        self.outstanding -= 1
        if alone:
            self.alone = False
        if on_trial:
            self.circuit.abandon()

    def well(self, now: float, models: tuple[str, ...]) -> bool:
        """A check went well; whether that is news."""
        news = not self.healthy
        self.models = models
        self.healthy = True
        if self.circuit.state is CircuitState.OPEN:
            self.circuit.probed(now, well=True)
        if news:
            self.comebacks += 1
        return news

    def unwell(self, now: float, error: DocmillError) -> bool:
        """A check went ill; whether that is news.

        A server that is slow to answer may only be busy: it is given up after several such checks in a row.
        """
        self.last_error = error
        slow = isinstance(error, RequestTimeout)
        if self.circuit.state is CircuitState.CLOSED:
            self.circuit.failed(now, unreachable=not slow)
        else:
            self.circuit.probed(now, well=False)
        if slow and self.healthy and self.circuit.state is CircuitState.CLOSED:
            return False
        news = self.healthy is not False
        self.healthy = False
        return news

    def seconds_to_check(self, now: float) -> float:
        """Until its next check, unless a request fails before."""
        if self.circuit.state is CircuitState.OPEN:
            return max(0.0, self.circuit.retry_at - now)
        return self._timings.longest_backoff_seconds if not self.healthy else self._timings.check_seconds

    def seconds_to_probe(self, now: float) -> float:
        """How long its open circuit asks to be left alone."""
        return max(0.0, self.circuit.retry_at - now) if self.circuit.state is CircuitState.OPEN else 0.0

    def why(self, now: float) -> str:
        """Why it gets no request, in a few words."""
        if self.healthy and now < self.rests_until:
            return f"asked to be left alone for {self.rests_until - now:.0f} s more"
        if self.last_error is not None and not (self.healthy and self.circuit.admits):
            return self.last_error.message
        return "not asked yet" if not self.healthy else "well"

    def described(self) -> EndpointState:
        """For people."""
        return EndpointState(
            self.url, self.endpoint.served_name, self.healthy, self.outstanding, self.circuit.state,
            self.last_error.message if self.last_error else None, self.models,
        )  # fmt: skip
