"""Starting and ending model servers with somebody looking on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from rich.logging import RichHandler
from rich.markup import escape

from console.output import console, printable
from console.server_tables import lasted, load_line, print_log, short
from console.start_progress import Show, start_progress
from docmill.failures import DatabaseUnavailable, DocmillError, ServerNotReady
from docmill.model_failures import ServerAlreadyUp
from docmill.model_servers import ServerRecord, ServerState
from docmill.settings import Settings
from flows.endpoints import database_url
from flows.launches import StartOptions
from flows.server_ends import end_lost, stop_server
from flows.server_errors import error_of
from flows.starters import StartsHere
from flows.supervision import Supervision, drained_by_signals
from storage.ledger.model_servers import PostgresServerRegistry

LOOK_SECONDS = 0.5
LINE_SECONDS = 2.0


async def serve_here(settings: Settings, profile: str, replicas: int, options: StartOptions) -> None:
    """Run servers in this process until they have ended.

    Raises:
        DocmillError: what they failed with.
    """
    logging.basicConfig(
        level=logging.WARNING, format="%(message)s", handlers=[RichHandler(console=console, show_path=False)]
    )
    async with _registry(settings) as registry:
        ids = await _rows(registry, profile, replicas)
        if not ids:
            return
        began = time.monotonic()
        with contextlib.ExitStack() as shown:
            show = shown.enter_context(start_progress(short(profile), ids))
            ready: set[UUID] = set()
            news = asyncio.Event()

            def tell(server_id: UUID, phase: str, share: float | None) -> None:
                show(server_id, phase, share)
                if phase == "ready":
                    ready.add(server_id)
                    news.set()

            supervision = Supervision(settings, profile, ids, registry, options=options, on_progress=tell)
            line = asyncio.create_task(_line(registry, ids, ready, news, shown, began))
            try:
                with drained_by_signals(supervision, _say_draining):
                    ended = await supervision.run()
            finally:
                line.cancel()
                await asyncio.gather(line, return_exceptions=True)
        for server_id, state in ended.items():
            await _say_end(registry, server_id, state)


async def serve_detached(settings: Settings, profile: str, replicas: int, options: StartOptions) -> None:
    """Start a supervisor that goes on without us, and wait until its servers are ready.

    Raises:
        DocmillError: what one of them failed with; ServerNotReady: it was not ready in time, or was stopped.
    """
    async with _registry(settings) as registry:
        ids = await _rows(registry, profile, replicas)
        if not ids:
            return
        starter = StartsHere(settings, profile, registry, options)
        await starter.start_all(ids)
        began = time.monotonic()
        try:
            with start_progress(short(profile), ids) as show:
                records = await _until_ready(registry, starter, ids, show, settings.serving.ready_seconds)
        except asyncio.CancelledError:
            console.print(f"the start goes on without us; docmill stop {escape(profile)} ends it", style="dim")
            raise
        for record in records:
            _say_ready(record, time.monotonic() - began)


async def stop_all(settings: Settings, records: Sequence[ServerRecord], *, force: bool) -> list[DocmillError]:
    """End servers, all at once; the errors of those that could not be."""

    async def stop(record: ServerRecord) -> DocmillError | None:
        name = f"{short(record.profile)} on {record.host}"
        try:
            ended = await stop_server(
                registry, record, force=force, drain_seconds=settings.serving.drain_seconds,
                on_progress=lambda now: status.update(f"{escape(printable(name))}: {_ending(now)}"),
            )  # fmt: skip
        except DocmillError as error:
            return error
        state = str(ended.state) if record.state.live else f"had ended already, {ended.state}"
        console.print(f"[bold]{state}[/]: {escape(printable(name))}", highlight=False)
        return None

    with console.status("asking it to end") as status:
        async with _registry(settings) as registry:
            return [error for error in await asyncio.gather(*map(stop, records)) if error is not None]


# --- parts ------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _registry(settings: Settings) -> AsyncIterator[PostgresServerRegistry]:
    async with PostgresServerRegistry.connect(database_url(settings), pool_size=4) as registry:
        yield registry


async def _rows(registry: PostgresServerRegistry, profile: str, replicas: int) -> list[UUID]:
    """New rows; none, and where it is, where the profile is up already."""
    for record in await registry.servers(profile=profile):
        await end_lost(registry, record)
    try:
        return await registry.add_servers(profile, socket.gethostname(), replicas)
    except ServerAlreadyUp as error:
        for record in reversed(await registry.servers(profile=profile)):
            where = f" at {record.base_url}" if record.base_url else ""
            console.print(
                f"[bold green]already up[/]: {escape(printable(record.profile))} is {record.state} on "
                f"{escape(record.host)}{escape(where)}",
                highlight=False,
            )
        console.print(f"what to do: {error.remedy}", style="dim")
        return []


async def _until_ready(
    registry: PostgresServerRegistry, starter: StartsHere, ids: Sequence[UUID], show: Show, seconds: float
) -> list[ServerRecord]:
    deadline = time.monotonic() + seconds
    while True:
        records = [await registry.server(server_id) for server_id in ids]
        for record in records:
            if record.state is ServerState.FAILED:
                raise _told(error_of(record))
            if record.state in (ServerState.DRAINING, ServerState.STOPPED):
                raise ServerNotReady(
                    f"the server was stopped: {record.message or 'on request'}", remedy="start it again"
                )
            ready = record.state is not ServerState.STARTING
            show(record.id, "ready" if ready else record.phase or "starting", record.progress)
            await starter.check(record)
        if all(record.state is not ServerState.STARTING for record in records):
            return records
        if time.monotonic() > deadline:
            raise ServerNotReady(
                f"not ready within {seconds:g} s; its supervisor goes on", remedy="see: docmill servers"
            )
        await asyncio.sleep(LOOK_SECONDS)


async def _line(
    registry: PostgresServerRegistry, ids: Sequence[UUID], ready: set[UUID], news: asyncio.Event,
    shown: contextlib.ExitStack, began: float,
) -> None:  # fmt: skip
    """Once all are ready: where they are, then a line with their load, for ever."""
    while len(ready) < len(ids):
        await news.wait()
        news.clear()
    shown.close()
    for server_id in ids:
        _say_ready(await registry.server(server_id), time.monotonic() - began)
    console.print("Ctrl-C drains and ends it", style="dim")
    with console.status("") as status:
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                lines = [load_line(await registry.server(server_id)) for server_id in ids]
                status.update(" | ".join(map(escape, lines)))
            await asyncio.sleep(LINE_SECONDS)


def _say_ready(record: ServerRecord, seconds: float) -> None:
    console.print(
        f"[bold green]ready[/]: {escape(record.base_url)} serves {escape(printable(record.served_name))} "
        f"[dim]({lasted(seconds)})[/]",
        highlight=False,
    )


def _say_draining() -> None:
    console.print("draining: running requests finish first (again: at once)", style="yellow")


async def _say_end(registry: PostgresServerRegistry, server_id: UUID, state: ServerState) -> None:
    record = await registry.server(server_id)
    if state is ServerState.FAILED:
        raise _told(error_of(record))
    message = (record.message or "").partition("\n")[0]
    console.print(f"[bold]{state}[/]: {escape(printable(message))}", highlight=False)


def _told(error: DocmillError) -> DocmillError:
    """The error, after its last log lines were printed."""
    if log := str(error.detail.get("log") or ""):
        print_log(log.splitlines()[-20:])
    return error


def _ending(record: ServerRecord) -> str:
    load = load_line(record) or str(record.state)
    return f"{load}{', waiting for its leases' if record.state is ServerState.READY and record.leases else ''}"
