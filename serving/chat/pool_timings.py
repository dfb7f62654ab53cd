"""How often servers are looked at, and when they are left alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTimings:
    """Durations in seconds; tests shorten them.

    Attributes:
        check_seconds: between two checks of a server that is well.
        connect_seconds, health_seconds: deadlines of a check.
        failures: in a row, after which a circuit opens.
        longest_backoff_seconds: between two probes of a server that is unwell: how soon its return is seen.
    """

    check_seconds: float = 15.0
    connect_seconds: float = 5.0
    health_seconds: float = 10.0
    failures: int = 5
    longest_backoff_seconds: float = 3.0
