"""The supervisor of one model server: it starts it, watches it, restarts it within a budget, and ends it.

::

    starting ──ready──▶ ready ◀──▶ sleeping
       ▲                  │ │
       └──crash, hang─────┘ └─stop, idle, SIGTERM──▶ draining ──▶ stopped
       └──nothing that a restart mends, or budget spent──▶ failed
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from docmill.failures import DocmillError, LeaseLost, failure_of
from docmill.launching import Endpoint, Launch
from docmill.model_servers import ServerRegistry, ServerState
from serving.supervision.diagnosis import Cure, Diagnosis, diagnose
from serving.supervision.endings import ServerDied, StopAsked, Trouble
from serving.supervision.running_server import OnProgress, RunningServer, check_port
from serving.supervision.server_api import ServerApi
from serving.supervision.server_process import ProcessEnd, ServerProcess
from serving.supervision.server_row import ServerRow
from serving.supervision.start_log import TAIL_LINES, StartReport
from serving.supervision.timings import SupervisorTimings

LOG_LINES = 50
_log = logging.getLogger(__name__)


def _quietly(phase: str, progress: float | None) -> None:
    """Progress that nobody looks at."""


class Supervisor:
    """Owns a row of ``model_servers`` and the process behind it.

    Args:
        server_id: the row, in state ``starting``.
        launch: what to start.
        registry: the row's ledger.
        timings: how long to wait for what.
        on_progress: called with (phase, share of it or None) while the server starts, and with ("ready", 1.0).
        inherited: the environment to take from (see surroundings.py); None: this process's.
    """

    def __init__(
        self,
        server_id: UUID,
        launch: Launch,
        registry: ServerRegistry,
        timings: SupervisorTimings | None = None,
        *,
        on_progress: OnProgress = _quietly,
        inherited: Mapping[str, str] | None = None,
    ) -> None:
        self.server_id = server_id
        self.launch = launch
        self._registry = registry
        self._timings = timings or SupervisorTimings()
        self._on_progress = on_progress
        self._inherited = dict(os.environ if inherited is None else inherited)
        self._row = ServerRow(server_id, registry, self._timings)
        self._api = ServerApi(
            Endpoint(launch.base_url, launch.served_name, launch.api_key, server_id), self._timings.http_seconds
        )
        self._hurry = asyncio.Event()
        self._running: RunningServer | None = None
        self._process: ServerProcess | None = None
        self._restarts: deque[float] = deque()
        self._failed_start: str | None = None

    @property
    def report(self) -> StartReport | None:
        """What the last start told: phases, KV cache, vLLM's own figures."""
        return self._running.report if self._running else None

    @property
    def process(self) -> ServerProcess | None:
        """The process of now, or the last one."""
        return self._process

    def drain(self) -> None:
        """Ask for the end: no new leases, running requests finish within the deadline. A second call ends it at once.

        For a signal handler of the event loop that runs :meth:`run`.
        """
        if self._row.stop.is_set():
            self._hurry.set()
        self._row.ask_to_stop("stopped by a signal")

    async def run(self) -> ServerState:
        """Run the server until it has ended for good; the state that its row ended in.

        Nothing is raised but cancellation, and nothing is left running in any case.
        """
        beat = asyncio.ensure_future(self._row.beat())
        try:
            return await self._supervise()
        except LeaseLost:
            _log.error("model server %s: the row has ended; so does the server", self.server_id)
            await self._end_process()
            return await self._ended_state()
        except asyncio.CancelledError:
            await self._end_process()
            await self._farewell(ServerState.STOPPED, None, "its supervisor was cancelled")
            raise
        except Exception as error:
            _log.exception("the supervisor of model server %s failed", self.server_id)
            await self._end_process()
            failure = failure_of(error)
            await self._farewell(ServerState.FAILED, failure.code, failure.message)
            return ServerState.FAILED
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
            await self._api.close()

    async def _supervise(self) -> ServerState:
        while True:
            try:
                await self._live()
            except StopAsked as stop:
                return await self._stop(stop.why)
            except ServerDied as death:
                diagnosis, end = None, death.end
            except Trouble as trouble:
                diagnosis = trouble.diagnosis
                # its exit status would only say how it was ended
                end = replace(await self._end_process(dump=trouble.hung), exit_code=None)
            diagnosis = self._explain(diagnosis, end)
            _log.warning("model server %s: %s", self.server_id, diagnosis.message)
            verdict = self._verdict(diagnosis, end)
            try:
                # Pages may have been in flight: they are counted even if this was the last crash.
                if verdict is None or self._was_ready:
                    await self._row.unless_ended(self._record(diagnosis, end))
                if verdict is not None:
                    return await self._fail(verdict)
                await self._row.unless_ended(self._back_off())
            except StopAsked as stop:
                return await self._stop(stop.why)

    async def _live(self) -> None:
        """One process's life; never returns but by an exception."""
        self._running = None
        if self._row.stop.is_set():
            raise StopAsked(self._row.why)
        try:
            check_port(self.launch)
            self._process = await ServerProcess.start(
                self.launch,
                self.server_id,
                inherited=self._inherited,
                grace_seconds=self._timings.grace_seconds,
                kill_seconds=self._timings.kill_seconds,
            )
        except DocmillError as error:
            raise Trouble(Diagnosis.of(error)) from error
        running = RunningServer(self.launch, self._process, self._api, self._row, self._timings, self._on_progress)
        self._running = running
        await self._row.tell(
            pid=self._process.pid, pid_started=self._process.started_at, base_url=self.launch.base_url,
            served_name=self.launch.served_name, config_hash=self.launch.config_hash,
            log_path=str(self.launch.log_path), phase=running.report.phase, progress=None,
        )  # fmt: skip
        await running.until_ended(running.become_ready())
        self._failed_start = None
        await running.until_ended(running.serve())

    @property
    def _was_ready(self) -> bool:
        return self._running is not None and self._running.ready

    # --- after a crash --------------------------------------------------------------------------------------------

    def _explain(self, diagnosis: Diagnosis | None, end: ProcessEnd) -> Diagnosis:
        if end.left:
            return Diagnosis(
                "stuck_process",
                f"processes {', '.join(map(str, end.left))} of the server cannot be killed: they are stuck in a driver",
                "they hold the GPU's memory; restart the host if they do not go away",
                Cure.NONE,
            )
        if diagnosis is not None:
            return diagnosis
        return diagnose(end.exit_code, self._tail(TAIL_LINES).splitlines(), ready=self._was_ready)

    def _verdict(self, diagnosis: Diagnosis, end: ProcessEnd) -> Diagnosis | None:
        """None: restart it. Else why not."""
        now = time.monotonic()
        again = diagnosis.cure is Cure.ONCE and self._failed_start == diagnosis.code
        if not self._was_ready:
            self._failed_start = diagnosis.code
        if diagnosis.cure is Cure.NONE or again:
            return diagnosis
        while self._restarts and now - self._restarts[0] > self._timings.restart_window_seconds:
            self._restarts.popleft()
        if len(self._restarts) >= self._timings.restart_budget:
            count, minutes = len(self._restarts), self._timings.restart_window_seconds / 60
            return replace(
                diagnosis, message=f"{diagnosis.message}; restarted {count} times within {minutes:g} minutes before"
            )
        self._restarts.append(now)
        return None

    async def _record(self, diagnosis: Diagnosis, end: ProcessEnd) -> None:
        tail = "\n".join(filter(None, [diagnosis.evidence, self._tail(LOG_LINES)]))
        await self._row.insist(
            lambda: self._registry.record_restart(
                self.server_id, code=diagnosis.code, message=diagnosis.message, exit_code=end.exit_code, log_tail=tail
            )
        )
        await self._row.tell(phase="restarting", progress=None, pid=None, pid_started=None)
        self._on_progress("restarting", None)

    async def _back_off(self) -> None:
        delay = self._timings.backoff_seconds * 2.0 ** max(0, len(self._restarts) - 1)
        await asyncio.sleep(min(delay, self._timings.backoff_limit_seconds))

    async def _fail(self, diagnosis: Diagnosis) -> ServerState:
        parts = [f"{diagnosis.message} ({diagnosis.remedy})" if diagnosis.remedy else diagnosis.message]
        if diagnosis.evidence:
            parts.append(diagnosis.evidence)
        if tail := self._tail(LOG_LINES):
            parts.append(f"last log lines:\n{tail}")
        await self._farewell(ServerState.FAILED, diagnosis.code, "\n".join(parts))
        return ServerState.FAILED

    def _tail(self, lines: int) -> str:
        return self._running.log.tail(lines) if self._running else ""

    # --- the end --------------------------------------------------------------------------------------------------

    async def _stop(self, why: str) -> ServerState:
        await self._row.farewell(lambda: self._row.begin_drain(force=True))
        running = self._running
        if running is not None and running.process.running:
            if running.ready and not running.asleep:
                await self._run_dry(running)
            end = await running.process.stop(self._timings.stop_grace_seconds)
            if end.left:
                diagnosis = self._explain(None, end)
                return await self._fail(diagnosis)
        await self._farewell(ServerState.STOPPED, None, why)
        return ServerState.STOPPED

    async def _run_dry(self, running: RunningServer) -> None:
        dry = asyncio.ensure_future(running.run_dry())
        waits: list[asyncio.Future[Any]] = [
            dry,
            *map(asyncio.ensure_future, (running.process.wait(), self._hurry.wait(), self._row.lost.wait())),
        ]
        try:
            await asyncio.wait(waits, timeout=self._timings.drain_seconds, return_when=asyncio.FIRST_COMPLETED)
            if dry.done():
                dry.result()
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _end_process(self, *, dump: bool = False) -> ProcessEnd:
        process = self._process
        if process is None or not process.running:
            return ProcessEnd(None)
        if dump:
            return await process.dump_and_kill(self._timings.dump_seconds)
        return await process.kill()

    async def _farewell(self, state: ServerState, code: str | None, message: str) -> None:
        await self._row.farewell(lambda: self._registry.enter(self.server_id, state, error_code=code, message=message))

    async def _ended_state(self) -> ServerState:
        with contextlib.suppress(DocmillError):
            record = await self._registry.server(self.server_id)
            if not record.state.live:
                return record.state
        return ServerState.FAILED
