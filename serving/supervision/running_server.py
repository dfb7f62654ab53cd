"""One process of a model server, from its start to the moment when something ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

from docmill.failures import ConfigurationError, DatabaseUnavailable, TransientError
from docmill.launching import Launch
from docmill.model_failures import BadRequest, PortTaken, ServedNameUnknown, ServerRefused
from docmill.model_servers import ServerState
from serving.supervision.diagnosis import Cure, Diagnosis
from serving.supervision.endings import StopAsked, Trouble
from serving.supervision.metrics import ServerMetrics
from serving.supervision.server_api import ServerApi
from serving.supervision.server_process import ServerProcess
from serving.supervision.server_row import ServerRow
from serving.supervision.start_log import WARMING, LogReader, StartReport
from serving.supervision.surroundings import bound_host, can_sleep
from serving.supervision.timings import SupervisorTimings
from serving.supervision.watch import Watch

T = TypeVar("T")
OnProgress = Callable[[str, float | None], None]
_log = logging.getLogger(__name__)


def check_port(launch: Launch) -> None:
    """Raise PortTaken where the server could not listen.

    vLLM sets SO_REUSEPORT: it would share the port with another server of the same user, and each would get half of the
    other's requests. So this is asked before, without that option.
    """
    port = urlsplit(launch.base_url).port
    host = bound_host(launch.command) or "0.0.0.0"  # where vLLM listens without --host
    if not port:
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortTaken(f"port {port} of {host} cannot be listened on: {error.strerror}") from error


class RunningServer:
    """A process, its HTTP side and its log.

    Every method that waits raises ServerDied when the process ends, StopAsked when the end is asked for, LeaseLost when
    the row is gone, Trouble when the process must go.

    Attributes:
        report: what its start has told so far.
        ready: whether it has ever been ready.
        asleep: whether it was put to sleep.
    """

    def __init__(
        self,
        launch: Launch,
        process: ServerProcess,
        api: ServerApi,
        row: ServerRow,
        timings: SupervisorTimings,
        on_progress: OnProgress,
    ) -> None:
        self.process = process
        self.log = LogReader(launch.log_path, process.log_offset, launch.api_key)
        self.report = StartReport()
        self.ready = False
        self.asleep = False
        self._launch = launch
        self._api = api
        self._row = row
        self._timings = timings
        self._on_progress = on_progress
        self._can_sleep = can_sleep(launch)
        self._ready_at = 0.0
        self._kept: tuple[float, ServerMetrics] | None = None

    async def until_ended(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work, unless the server's life ends before."""
        return await self._row.unless_ended(work, self.process)

    # --- becoming ready -------------------------------------------------------------------------------------------

    async def become_ready(self) -> None:
        """Wait until it has answered, then say so in the row."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._timings.ready_seconds):
                await self._answers()
        except TimeoutError:
            raise Trouble(
                Diagnosis(
                    "start_timeout",
                    f"the server was not ready within {self._timings.ready_seconds:g} s (it was {self.report.phase})",
                    "see the last log lines; raise serving.ready_seconds if it is only slow",
                    Cure.RESTART,
                ),
                hung=True,
            ) from None
        self.report.figures["ready_seconds"] = round(time.monotonic() - began, 2)
        self._follow_log()
        await self._row.tell(kv_cache_tokens=self.report.kv_cache_tokens, phase=None, progress=None)
        self._ready_at = time.monotonic()
        self.ready = True
        await self._row.enter(ServerState.READY)
        self._on_progress("ready", 1.0)

    async def _answers(self) -> None:
        told: tuple[str, float | None] | None = None
        healthy = False
        while True:
            self._follow_log()
            if healthy:
                self.report.phase, self.report.progress = WARMING, None
            now = (self.report.phase, self.report.progress)
            if now != told:
                told = now
                self._on_progress(*now)
                await self._row.tell(phase=now[0], progress=now[1])
            if healthy and await self._answered():
                return
            if not healthy:
                healthy = await self._api.healthy()
            if not healthy or told[0] == WARMING:
                await asyncio.sleep(self._timings.poll_seconds)

    async def _answered(self) -> bool:
        try:
            await self._api.check_name()
            await self._api.answer_about_image(self._timings.ready_seconds)
        except TransientError as error:
            _log.info("model server %s is not ready: %s", self._row.server_id, error.message)
            return False
        except (ServedNameUnknown, ServerRefused) as error:
            raise Trouble(Diagnosis.of(error)) from error
        except BadRequest as error:
            said = " ".join(str(error.detail.get("body", "")).split())[:300]
            refused = ConfigurationError(
                f"the server refuses a picture: {said}",
                remedy="the model must read images; check --limit-mm-per-prompt and the chat template",
            )
            raise Trouble(Diagnosis.of(refused)) from error
        return True

    def _follow_log(self) -> None:
        for line in self.log.new_lines():
            self.report.read(line)

    # --- being watched --------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Watch over it and follow the leases, until something ends it."""
        timings = self._timings
        watch = Watch(timings.hang_seconds, timings.probe_seconds, 3 * (timings.watch_seconds + timings.http_seconds))
        probe: asyncio.Task[bool] | None = None
        try:
            while True:
                metrics = await self._metrics()
                why = watch.look(time.monotonic(), metrics)
                if why is not None:
                    raise Trouble(
                        Diagnosis("hang", f"the server hung: {why}", "see the stacks in its log", Cure.RESTART),
                        hung=True,
                    )
                if probe is not None and probe.done():
                    watch.probe_ended(answered=probe.result())
                    probe = None
                if watch.probe_is_due and probe is None:
                    watch.probe_sent()
                    probe = asyncio.ensure_future(self._probe())
                await self._keep(metrics)
                self._follow_log()
                if await self._rest(metrics):
                    watch = Watch(timings.hang_seconds, timings.probe_seconds, 3 * timings.watch_seconds)
                await asyncio.sleep(timings.watch_seconds)
        finally:
            if probe is not None:
                probe.cancel()
                await asyncio.gather(probe, return_exceptions=True)

    async def _metrics(self) -> ServerMetrics | None:
        try:
            return await self._api.metrics()
        except (TransientError, ServerRefused, BadRequest):
            return None

    async def _probe(self) -> bool:
        try:
            await self._api.answer_briefly(2 * self._timings.hang_seconds)
        except (TransientError, ServerRefused, BadRequest) as error:
            _log.warning("model server %s does not answer its probe: %s", self._row.server_id, error.message)
            return False
        return True

    async def _keep(self, metrics: ServerMetrics | None) -> None:
        now = time.monotonic()
        if metrics is None or (self._kept is not None and now - self._kept[0] < self._timings.metrics_seconds):
            return
        earlier, seconds = (self._kept[1], now - self._kept[0]) if self._kept else (None, 0.0)
        self._kept = (now, metrics)
        await self._row.tell(metrics=metrics.since(earlier, seconds).as_row())

    # --- resting --------------------------------------------------------------------------------------------------

    async def _rest(self, metrics: ServerMetrics | None) -> bool:
        """Sleep or stop where it is time; True after a sleep that is over."""
        await self._stop_if_idle()
        if not self._can_sleep or metrics is None or metrics.busy or self._idle() < self._timings.idle_sleep_seconds:
            return False
        try:
            # First the row: who takes a lease from here on waits until it is ready again. Then a look whether somebody
            # took one just before.
            await self._row.registry.enter(self._row.server_id, ServerState.SLEEPING)
            orders = await self._row.next_orders()
        except DatabaseUnavailable:
            await self._row.enter(ServerState.READY)
            return False
        if not orders.leases and await self._fell_asleep():
            self.asleep = True
            while self._row.orders is None or not self._row.orders.leases:
                await self._stop_if_idle()
                await self._row.next_beat()
            await self._wake()
        await self._row.enter(ServerState.READY)
        self._ready_at = time.monotonic()
        return True

    async def _fell_asleep(self) -> bool:
        try:
            if await self._api.sleep(self._timings.sleep_seconds):
                return True
        except (TransientError, ServerRefused, BadRequest) as error:
            _log.warning("model server %s did not fall asleep: %s", self._row.server_id, error.message)
            await self._wake()
        self._can_sleep = False
        return False

    async def _wake(self) -> None:
        try:
            await self._api.wake_up(self._timings.sleep_seconds)
            await self._api.answer_briefly(self._timings.sleep_seconds)
        except (TransientError, ServerRefused, BadRequest) as error:
            diagnosis = Diagnosis(
                "wake_failed", f"the server did not wake up: {error.message}", "see the last log lines", Cure.RESTART
            )
            raise Trouble(diagnosis, hung=True) from error
        self.asleep = False

    def _idle(self) -> float:
        orders = self._row.orders
        if orders is None or orders.leases:
            return 0.0
        return min(orders.idle_seconds, time.monotonic() - self._ready_at)

    async def _stop_if_idle(self) -> None:
        idle = self._idle()
        if idle >= self._timings.idle_stop_seconds:
            with contextlib.suppress(DatabaseUnavailable):
                if await self._row.begin_drain(force=False):
                    raise StopAsked(f"stopped after {idle:.0f} s without leases")

    # --- the end --------------------------------------------------------------------------------------------------

    async def run_dry(self) -> None:
        """Wait until nothing runs or waits in it, twice in a row, since a request may be on its way."""
        quiet = 0
        while quiet < 2:
            metrics = await self._metrics()
            quiet = quiet + 1 if metrics is not None and not metrics.busy else 0
            if quiet < 2:
                await asyncio.sleep(self._timings.poll_seconds)
