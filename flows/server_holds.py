"""One holder's leases on the servers of a model: taken, kept alive, let go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from uuid import UUID

from docmill.failures import DatabaseUnavailable, DocmillError, ServerNotReady
from docmill.model_servers import ServerLease, ServerRecord, ServerRegistry, ServerState
from flows.server_errors import error_of, may_be_started_again
from flows.starters import Starter
from flows.supervision import unhindered

OnProgress = Callable[[ServerRecord], None]
WAITING_LOOK_SECONDS = 0.5
KEEPING_LOOK_SECONDS = 3.0
TOLD_SECONDS = 1.0
RELEASE_SECONDS = 10.0
logger = logging.getLogger(__name__)


def log_progress(record: ServerRecord) -> None:
    """Say in the log how far a server is."""
    share = f" {record.progress:.0%}" if record.progress is not None else ""
    logger.info("model server %s: %s%s", record.profile, record.phase or record.state, share)


class Progress:
    """Hands news on, at most once a second."""

    def __init__(self, tell: OnProgress) -> None:
        self._tell = tell
        self._told: tuple[object, ...] = ()
        self._told_at = 0.0

    def of(self, record: ServerRecord) -> None:
        """It stands like this now."""
        news = (record.id, record.state, record.phase, record.progress)
        due = time.monotonic() - self._told_at >= TOLD_SECONDS or record.state is not ServerState.STARTING
        if news != self._told and due:
            self._told, self._told_at = news, time.monotonic()
            self._tell(record)


class ServerHold:
    """Leases on every usable server of one profile.

    Args:
        registry: who gives them.
        profile: the servers' profile.
        holder: names this hold, and no other.
        lease_seconds: how long a lease lives; renewed after a third of it.
        starter: who starts a server where there is none.

    Attributes:
        leases: by server.
        given_up: the last server held, where it failed or was stopped by somebody and none is held since.
    """

    def __init__(
        self, registry: ServerRegistry, profile: str, holder: str, lease_seconds: float, starter: Starter
    ) -> None:
        self.profile = profile
        self.leases: dict[UUID, ServerLease] = {}
        self._registry = registry
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._starter = starter
        self._renew_at = 0.0
        self._wants_start = False
        self.given_up: ServerRecord | None = None

    async def until_ready(self, seconds: float, on_progress: OnProgress = log_progress) -> list[ServerRecord]:
        """Take the leases, starting a server where there is none, and wait until one is ready; the rows held.

        Args:
            seconds: how long to wait at most.
            on_progress: is told how the first server stands, at most once a second.

        Raises:
            DocmillError: the named error that the server failed with (ServerFailed, ServerOutOfMemory…).
            ServerNotReady: it was stopped meanwhile, is not ready in time, or nobody starts it.
            DatabaseUnavailable: the registry was away until the time was up.
        """
        deadline = time.monotonic() + seconds
        progress = Progress(on_progress)
        self._wants_start = True
        stands = "no server was started"
        while True:
            try:
                if self._wants_start:
                    await unhindered(self._start())
                live, ended = await self.look()
                if live and any([await self._starter.check(each) for each in live]):
                    continue
                if any(each.state is ServerState.READY for each in live):
                    progress.of(next(each for each in live if each.state is ServerState.READY))
                    return live
                if live:
                    stands = f"it is {live[0].phase or live[0].state}"
                    progress.of(live[0])
                elif ended:
                    self._judge(ended)
            except DatabaseUnavailable:
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                raise ServerNotReady(
                    f"no server of {self.profile} was ready within {seconds:g} s: {stands}",
                    remedy="see: docmill servers; raise serving.ready_seconds if it is only slow",
                )
            await asyncio.sleep(WAITING_LOOK_SECONDS)

    async def keep(self, changed: Callable[[list[ServerRecord]], None]) -> None:
        """Keep the leases alive until cancelled; ``changed`` is told the rows held, at every look.

        New servers of the profile are taken, ended ones dropped. Where the last one lost its supervisor (not where it
        was stopped or given up), another is started. A database that is away for a while is waited for.
        """
        away = False
        while True:
            await asyncio.sleep(min(self._lease_seconds / 3, KEEPING_LOOK_SECONDS))
            try:
                live, ended = await self.look()
                for each in ended:
                    logger.warning("the server of %s on %s has ended: %s", self.profile, each.host, each.state)
                if not live and ended:
                    last = max(ended, key=lambda each: each.created_at)
                    self._wants_start = may_be_started_again(last)
                    self.given_up = None if self._wants_start else last
                elif live:
                    self.given_up = None
                if self._wants_start:
                    await unhindered(self._start())
                    live, _ = await self.look()
                changed([each for each in live if not await self._starter.check(each)])
                away = False
            except DatabaseUnavailable:
                if not away:
                    logger.warning("the database is away; the leases on %s are renewed once it is back", self.profile)
                away = True
            except DocmillError as error:
                self._wants_start = False
                logger.error("no other server of %s could be started: %s", self.profile, error)
            except Exception:  # a bug must not silently end the renewals
                logger.exception("keeping the leases on %s failed", self.profile)

    async def look(self) -> tuple[list[ServerRecord], list[ServerRecord]]:
        """Renew what is due and take what is new; the rows that are held, oldest first, and those that have ended."""
        if time.monotonic() >= self._renew_at:
            await self._renew()
        rows = {each.id: each for each in await self._registry.servers(profile=self.profile)}
        ended = []
        for server_id in [each for each in self.leases if each not in rows]:
            ended.append(await self._registry.server(server_id))
            del self.leases[server_id]
        if ended and not self.leases:
            self._renew_at = 0.0  # perhaps somebody else has started another meanwhile
        held = sorted((rows[each] for each in self.leases), key=lambda each: each.created_at)
        return held, ended

    async def release(self) -> None:
        """Let go. A database that is away does not keep anybody: the leases expire by themselves."""
        leases, self.leases = list(self.leases.values()), {}
        if not leases:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._registry.release(leases)
        except (TimeoutError, DatabaseUnavailable):
            logger.warning("the leases on %s could not be released; they expire by themselves", self.profile)

    # --- within ---------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        """Leases on what is there, else on a row of our own that is then started."""
        acquired = await self._registry.acquire(
            self.profile, self._holder, self._lease_seconds, start_on=self._starter.host
        )
        self.leases |= {each.server_id: each for each in acquired.leases}
        self._renew_at = time.monotonic() + self._lease_seconds / 3
        if acquired.to_start is not None:
            await self._starter.start(acquired.to_start)
        elif not acquired.leases:
            await self._starter.wanted()
            return
        self._wants_start = False

    async def _renew(self) -> None:
        gone = await self._registry.renew(list(self.leases.values()), self._lease_seconds)
        lost = [server_id for server_id, lease in self.leases.items() if lease.id in gone]
        acquired = await self._registry.acquire(self.profile, self._holder, self._lease_seconds)
        self.leases |= {each.server_id: each for each in acquired.leases}
        self._renew_at = time.monotonic() + self._lease_seconds / 3
        for server_id in lost:
            lease = self.leases[server_id]
            if lease.id not in gone:
                continue  # it had expired, and was taken again
            record = None
            with contextlib.suppress(DocmillError):
                record = await self._registry.server(server_id)
            if record is None or record.state.live:
                del self.leases[server_id]  # about to stop: it is given to nobody any more

    def _judge(self, ended: list[ServerRecord]) -> None:
        """Go on with another server, or raise why not."""
        last = max(ended, key=lambda each: each.created_at)
        if may_be_started_again(last):
            self._wants_start = True
            return
        if last.state is ServerState.FAILED:
            raise error_of(last)
        raise ServerNotReady(
            f"the server of {self.profile} on {last.host} was stopped while it was waited for",
            remedy=f"start it again: docmill serve {self.profile}",
        )


async def end_quietly(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
