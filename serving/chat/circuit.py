"""A circuit breaker: when to leave a server alone, and when to try it again."""

from __future__ import annotations

from enum import StrEnum

from docmill.retrying import backoff_seconds


class CircuitState(StrEnum):
    """Whether requests go through."""

    CLOSED = "closed"  # they do
    OPEN = "open"  # none does, until a probe goes well
    HALF_OPEN = "half_open"  # one does, on trial


class Circuit:
    """Opens after ``threshold`` failures in a row, or at once where the server cannot be reached at all.

    Once the backoff is over, a probe of the server's health decides: a server that could not be reached is back when
    it can be reached (closed); one that was reachable but answered badly gets one request on trial (half open), whose
    success closes the circuit and whose failure opens it for longer. Times are seconds of a monotonic clock.
    """

    def __init__(self, *, threshold: int = 5, longest_seconds: float = 5.0) -> None:
        self._threshold = threshold
        self._longest_seconds = longest_seconds
        self._failures = 0
        self._openings = 0
        self._unreachable = False
        self._on_trial = False
        self.state = CircuitState.CLOSED
        self.retry_at = 0.0

    @property
    def admits(self) -> bool:
        """Whether a request may go through now."""
        return self.state is CircuitState.CLOSED or (self.state is CircuitState.HALF_OPEN and not self._on_trial)

    def begin(self) -> bool:
        """A request goes through; whether it does so on trial."""
        on_trial = self.state is CircuitState.HALF_OPEN
        self._on_trial |= on_trial
        return on_trial

    def abandon(self) -> None:
        """The request on trial ended without a verdict (its caller gave it up)."""
        self._on_trial = False

    def succeeded(self) -> None:
        """A request was answered."""
        self._failures = self._openings = 0
        self._unreachable = self._on_trial = False
        self.state = CircuitState.CLOSED

    def failed(self, now: float, *, unreachable: bool = False) -> None:
        """A request or a probe failed; ``unreachable``: the server is not there at all."""
        self._failures += 1
        self._on_trial = False
        if self.state is CircuitState.OPEN:
            self._unreachable |= unreachable
            return
        if unreachable or self.state is CircuitState.HALF_OPEN or self._failures >= self._threshold:
            self._unreachable = unreachable
            self._open(now)

    def probed(self, now: float, *, well: bool) -> None:
        """The outcome of a probe of the server's health while the circuit was open."""
        if not well:
            self._unreachable = True
            self._open(now)
        elif self._unreachable:
            self.succeeded()
        else:
            self.state = CircuitState.HALF_OPEN

    def _open(self, now: float) -> None:
        self._openings += 1
        self.state = CircuitState.OPEN
        self.retry_at = now + min(backoff_seconds(self._openings), self._longest_seconds)
