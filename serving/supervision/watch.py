"""Whether a running server still gets on: pure bookkeeping over what was seen of it."""

from __future__ import annotations

from serving.supervision.metrics import ServerMetrics


class Watch:
    """Judges a server by proofs of life: its token counters advance, or a probe is answered.

    ``/health`` proves nothing (it stays 200 on a hung engine) and the gauges of running requests prove little (they
    freeze with the engine, perhaps at 0). So a quiet server is sent a probe, and time without proof counts from when
    proof was due: since requests run, or since the probe was sent. While tokens advance a late probe is load, not a
    hang. A long silence of the watcher itself (a suspended machine) is not held against the server.

    Args:
        hang_seconds: so long without proof when proof was due is a hang.
        probe_seconds: so long without proof, and a probe is due.
        longest_gap_seconds: more time than this between two looks counts as this.
    """

    def __init__(self, hang_seconds: float, probe_seconds: float, longest_gap_seconds: float) -> None:
        self._hang = hang_seconds
        self._probe = probe_seconds
        self._gap = longest_gap_seconds
        self._seen_at: float | None = None
        self._clock = 0.0
        self._proof_at = 0.0
        self._due_since: float | None = None
        self._silent_since: float | None = None
        self._tokens: tuple[int, int] | None = None
        self._probing = False
        self._owed = False

    def look(self, now: float, metrics: ServerMetrics | None) -> str | None:
        """Take in a scrape (None: unanswered); why the server counts as hung, or None.

        Args:
            now: seconds on any clock that only goes forward.
            metrics: what /metrics said.
        """
        if self._seen_at is not None:
            self._clock += min(now - self._seen_at, self._gap)
        self._seen_at = now
        if metrics is None:
            if self._silent_since is None:
                self._silent_since = self._clock
        else:
            self._silent_since = None
            if self._tokens is not None and metrics.tokens != self._tokens:
                self._proven()
            self._tokens = metrics.tokens
            if metrics.busy and self._due_since is None:
                self._due_since = self._clock
            elif not metrics.busy and not self._owed:
                self._due_since = None
        if self._silent_since is not None and self._clock - self._silent_since >= self._hang:
            return f"/metrics was not answered for {self._hang:g} s"
        if self._due_since is not None and self._clock - self._due_since >= self._hang:
            return f"no token was generated and no probe answered for {self._hang:g} s"
        return None

    @property
    def probe_is_due(self) -> bool:
        """Whether a probe should be sent now: none is under way, and nothing proved life lately."""
        return not self._probing and (self._owed or self._clock - self._proof_at >= self._probe)

    def probe_sent(self) -> None:
        """A probe is under way: from now on a proof is owed."""
        self._probing = self._owed = True
        if self._due_since is None:
            self._due_since = self._clock

    def probe_ended(self, *, answered: bool) -> None:
        """It was answered with a token, or it failed: then a proof stays owed."""
        self._probing = False
        if answered:
            self._proven()

    def _proven(self) -> None:
        self._proof_at = self._clock
        self._due_since = None
        self._owed = False
