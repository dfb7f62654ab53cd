"""How long a supervisor waits for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from docmill.settings import ServingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorTimings:
    """Durations in seconds; the first block is settings, the rest suits every server (tests shorten it).

    Attributes:
        heartbeat_seconds: between two heartbeats, which is also how soon orders are seen.
        poll_seconds: between two looks at a starting or draining server.
        watch_seconds: between two looks at a running server's metrics.
        metrics_seconds: between two writes of the metrics into the row.
        http_seconds: deadline of /health, /v1/models and /metrics.
        sleep_seconds: deadline of going to sleep and of waking up.
        stop_grace_seconds: that vLLM gets between SIGTERM and SIGKILL.
        grace_seconds: the same for what a dead server left behind.
        dump_seconds: that processes get to write their stacks before they are killed.
        kill_seconds: after which a process that outlives SIGKILL (stuck in a driver) is given up.
        backoff_seconds, backoff_limit_seconds: before the first restart, doubled each time, up to the limit.
        farewell_seconds: how long an ending supervisor tries to reach a database that is away.
    """

    ready_seconds: float = 1800.0
    idle_sleep_seconds: float = 600.0
    idle_stop_seconds: float = 3600.0
    hang_seconds: float = 120.0
    probe_seconds: float = 60.0
    drain_seconds: float = 120.0
    restart_budget: int = 5
    restart_window_seconds: float = 1800.0

    heartbeat_seconds: float = 2.0
    poll_seconds: float = 0.5
    watch_seconds: float = 5.0
    metrics_seconds: float = 15.0
    http_seconds: float = 10.0
    sleep_seconds: float = 120.0
    stop_grace_seconds: float = 20.0
    grace_seconds: float = 3.0
    dump_seconds: float = 5.0
    kill_seconds: float = 60.0
    backoff_seconds: float = 1.0
    backoff_limit_seconds: float = 60.0
    farewell_seconds: float = 10.0

    @classmethod
    def of(cls, settings: ServingSettings) -> Self:
        """From ``[serving]``."""
        return cls(
            ready_seconds=settings.ready_seconds,
            idle_sleep_seconds=settings.idle_sleep_seconds,
            idle_stop_seconds=settings.idle_stop_seconds,
            hang_seconds=settings.hang_seconds,
            probe_seconds=settings.probe_seconds,
            drain_seconds=settings.drain_seconds,
            restart_budget=settings.restart_budget,
            restart_window_seconds=settings.restart_window_seconds,
        )
