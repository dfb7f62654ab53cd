"""Runs model servers: from their rows to their end. ``python -m flows.supervision`` is the detached supervisor.

One supervisor may run several servers (replicas). It reads its settings from environment and file like every other
part; its command line holds no secret.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from docmill.failures import DatabaseUnavailable, DocmillError, LeaseLost, failure_of
from docmill.launching import Launch
from docmill.model_failures import ServerFailed
from docmill.model_servers import ServerRegistry, ServerState, StopRequest
from docmill.settings import Settings, load_settings
from flows.endpoints import database_url
from flows.launches import Preparation, StartOptions
from serving.supervision.supervisor import Supervisor
from serving.supervision.timings import SupervisorTimings
from storage.ledger.model_servers import PostgresServerRegistry

OnProgress = Callable[[UUID, str, float | None], None]
HEARTBEAT_SECONDS = 2.0
Result = TypeVar("Result")
logger = logging.getLogger(__name__)


def _quietly(server_id: UUID, phase: str, progress: float | None) -> None:
    """Progress that nobody looks at."""


class Supervision:
    """The servers of one start.

    Args:
        settings: of the host.
        profile: the rows' profile.
        server_ids: rows in state ``starting``.
        registry: their ledger.
        options: what this start does otherwise than the settings say.
        on_progress: called with (row, phase, share of it or None).
        timings: by default the settings'.
    """

    def __init__(
        self,
        settings: Settings,
        profile: str,
        server_ids: Sequence[UUID],
        registry: ServerRegistry,
        *,
        options: StartOptions | None = None,
        on_progress: OnProgress = _quietly,
        timings: SupervisorTimings | None = None,
    ) -> None:
        options = options or StartOptions()
        self._settings = options.over(settings)
        self._profile = profile
        self._ids = tuple(server_ids)
        self._registry = registry
        self._gpus = options.gpus
        self._on_progress = on_progress
        self._timings = timings or SupervisorTimings.of(self._settings.serving)
        self._stop = asyncio.Event()
        self._unwanted: set[UUID] = set()
        self._supervisors: list[Supervisor] = []

    def drain(self) -> None:
        """Ask for the end of all of them; for a signal handler. A second call ends them at once."""
        self._stop.set()
        for supervisor in self._supervisors:
            supervisor.drain()

    async def run(self) -> dict[UUID, ServerState]:
        """Run the servers until each has ended; the states that their rows ended in. Nothing is left running.

        Raises:
            DocmillError: what kept them from being started; it is in their rows too.
        """
        try:
            launches = await self._prepared()
        except asyncio.CancelledError:
            await self._end_rows(ServerState.STOPPED, None, "its supervisor was cancelled before the start")
            raise
        except LeaseLost:
            logger.error("a row ended before its server was started")
            await self._end_rows(ServerState.FAILED, ServerFailed.code, "another replica's row ended before the start")
            raise
        except DocmillError as error:
            await self._end_rows(ServerState.FAILED, error.code, str(error))
            raise
        except Exception as error:
            failure = failure_of(error)
            await self._end_rows(ServerState.FAILED, failure.code, failure.message)
            raise
        if launches is None:
            await self._end_rows(ServerState.STOPPED, None, "stopped before it was started")
            return dict.fromkeys(self._ids, ServerState.STOPPED)
        return await self._supervise(launches)

    # --- before the start -----------------------------------------------------------------------------------------

    async def _prepared(self) -> dict[UUID, Launch] | None:
        """What to start; None where the end was asked for meanwhile."""
        preparation = Preparation(
            self._settings, self._profile, self._ids, self._registry, gpus=self._gpus, tell=self._tell
        )
        work = asyncio.ensure_future(preparation.launches())
        beat = asyncio.ensure_future(self._beat())
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([work, beat, stop], return_when=asyncio.FIRST_COMPLETED)
            if beat.done():
                beat.result()  # LeaseLost
            if stop.done():
                return None
            return work.result()
        finally:
            for each in (work, beat, stop):
                each.cancel()
            await asyncio.gather(work, beat, stop, return_exceptions=True)

    async def _tell(self, phase: str) -> None:
        for server_id in self._ids:
            self._on_progress(server_id, phase, None)
            with contextlib.suppress(DatabaseUnavailable):
                await self._registry.describe(server_id, phase=phase, progress=None)

    async def _beat(self) -> None:
        """Heartbeats while nothing runs yet, for ever."""
        while True:
            for server_id in self._ids:
                with contextlib.suppress(DatabaseUnavailable):
                    orders = await self._registry.heartbeat(server_id)
                    if orders.stop is not StopRequest.NONE and await self._registry.begin_drain(
                        server_id, force=orders.stop is StopRequest.FORCE
                    ):
                        self._unwanted.add(server_id)
            if self._unwanted == set(self._ids):
                self._stop.set()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _end_rows(self, state: ServerState, code: str | None, message: str) -> None:
        async def end() -> None:
            for server_id in self._ids:
                with contextlib.suppress(DocmillError):
                    await self._registry.enter(server_id, state, error_code=code, message=message)

        await unhindered(end())

    # --- the servers ----------------------------------------------------------------------------------------------

    async def _supervise(self, launches: dict[UUID, Launch]) -> dict[UUID, ServerState]:
        self._supervisors = [
            Supervisor(
                server_id, launch, self._registry, self._timings, on_progress=partial(self._on_progress, server_id)
            )
            for server_id, launch in launches.items()
        ]
        for supervisor in self._supervisors:
            if self._stop.is_set() or supervisor.server_id in self._unwanted:
                supervisor.drain()
        ended = await asyncio.gather(*(supervisor.run() for supervisor in self._supervisors))
        return {supervisor.server_id: state for supervisor, state in zip(self._supervisors, ended, strict=True)}


async def unhindered(work: Awaitable[Result]) -> Result:
    """Do short work to its end even where the task is cancelled meanwhile; the cancellation follows after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("what a cancelled task had to finish failed: %s", type(error).__name__)
        raise


@contextlib.contextmanager
def drained_by_signals(supervision: Supervision, told: Callable[[], None] = lambda: None) -> Iterator[None]:
    """SIGTERM, Ctrl-C and the end of the terminal ask for the end instead of breaking off; a second one hurries it.

    Where the end of the terminal is ignored (nohup), it stays so.
    """
    loop = asyncio.get_running_loop()

    def asked() -> None:
        supervision.drain()
        told()  # fails where the terminal is gone

    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, asked)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _detached(settings: Settings, profile: str, server_ids: Sequence[UUID], options: StartOptions) -> bool:
    """Whether every server ended as it was asked to."""
    async with PostgresServerRegistry.connect(database_url(settings), pool_size=2 + len(server_ids)) as registry:
        supervision = Supervision(settings, profile, server_ids, registry, options=options)
        with drained_by_signals(supervision, lambda: logger.info("asked to end")):
            ended = await supervision.run()
    for server_id, state in ended.items():
        logger.info("model server %s ended: %s", server_id, state)
    return all(state is ServerState.STOPPED for state in ended.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """The detached supervisor; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m flows.supervision", allow_abbrev=False)
    parser.add_argument("--server-id", type=UUID, action="append", required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--tensor-parallel-size", type=int)
    parser.add_argument("--gpus", default="")
    parser.add_argument("--port", type=int)
    parser.add_argument("--max-model-len", type=int)
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    options = StartOptions(
        tensor_parallel_size=given.tensor_parallel_size,
        gpus=tuple(int(index) for index in given.gpus.split(",") if index),
        port=given.port,
        max_model_len=given.max_model_len,
    )
    try:
        ended_well = asyncio.run(_detached(load_settings(), given.profile, given.server_id, options))
    except DocmillError as error:
        logger.error("%s: %s", error.code, error)
        return 1
    return 0 if ended_well else 1


if __name__ == "__main__":
    sys.exit(main())
