"""The flow ``keep-warm``: a model's servers are up, and stay so, on the host of the worker that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from typing import Any

import httpx
from prefect import flow
from prefect.client.schemas.objects import State
from prefect.exceptions import PrefectHTTPStatusError
from prefect.states import Completed

from docmill.failures import ConfigurationError
from docmill.model_failures import ServerAlreadyUp
from docmill.model_servers import ServerRecord, ServerRegistry, ServerState
from docmill.settings import Settings, load_settings
from flows.endpoints import database_url
from flows.launches import StartOptions, profile_key
from flows.model_servers import new_holder
from flows.server_errors import error_of
from flows.server_holds import ServerHold, end_quietly, log_progress
from flows.starters import StartsHere
from flows.supervision import unhindered
from storage.ledger.model_servers import PostgresServerRegistry
from tasks.report_servers import ServerTable, server_row

LOOK_SECONDS = 1.0


@flow(name="keep-warm", flow_run_name="keep-warm-{profile}", result_serializer="json", log_prints=False)
async def keep_warm(
    profile: str = "qwen2-vl-7b",
    tensor_parallel_size: int | None = None,
    replicas: int = 1,
    gpus: list[int] | None = None,
    minutes: int | None = None,
) -> State[dict[str, Any]]:
    """Start a model's servers on this host where none is up, and keep them from going to sleep.

    The servers outlive the run: when it ends or is cancelled, they go to sleep and away by their own rules.

    Args:
        profile: the model: a profile's name or a folder on the worker's host.
        tensor_parallel_size: GPUs of one server; by default what the plan finds best.
        replicas: servers beside each other, where none is up yet.
        gpus: indexes of the GPUs that may be used; by default all.
        minutes: how long from when the first is ready; by default until the run is cancelled.
    """
    _check(tensor_parallel_size, replicas, gpus, minutes)
    settings = load_settings()
    if settings.serving.base_urls:
        raise ConfigurationError(
            "serving.base_urls names servers that others run", remedy="unset it where docmill is to run servers itself"
        )
    name = profile_key(profile, settings)
    options = StartOptions(tensor_parallel_size=tensor_parallel_size, gpus=tuple(gpus or ()))
    async with PostgresServerRegistry.connect(database_url(settings)) as registry:
        starter = StartsHere(settings, name, registry, options)
        if replicas > 1:
            with contextlib.suppress(ServerAlreadyUp):
                await starter.start_all(await registry.add_servers(name, socket.gethostname(), replicas))
        hold = ServerHold(registry, name, new_holder(), settings.serving.lease_seconds, starter)
        try:
            return await _hold(hold, settings, registry, minutes)
        finally:
            await unhindered(hold.release())


async def _hold(
    hold: ServerHold, settings: Settings, registry: ServerRegistry, minutes: int | None
) -> State[dict[str, Any]]:
    plain = re.sub(r"[^a-z0-9]+", "-", hold.profile.lower()).strip("-")
    table = ServerTable(f"model-servers-{plain}", f"Servers of `{hold.profile}`: docmill servers")
    rows: list[ServerRecord] = []
    news = asyncio.Event()

    def tell(record: ServerRecord) -> None:
        log_progress(record)
        rows[:] = [record]
        news.set()

    showing = asyncio.create_task(_show(table, rows, news))
    try:
        rows[:] = await hold.until_ready(settings.serving.ready_seconds, tell)
        news.set()
        until = None if minutes is None else time.monotonic() + 60.0 * minutes
        keeping = asyncio.create_task(hold.keep(lambda held: _changed(rows, held, news)))
        try:
            while until is None or time.monotonic() < until:
                if (gone := hold.given_up) is not None:
                    if gone.state is ServerState.FAILED:
                        raise error_of(gone)
                    return Completed(message=f"the server was stopped: {gone.message or 'on request'}")
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await end_quietly(keeping)
        kept = [{"profile": each.profile, "url": each.base_url, "state": str(each.state)} for each in rows]
        return Completed(message=f"kept warm for {minutes} min", data={"servers": kept})
    finally:
        await end_quietly(showing)
        with contextlib.suppress(PrefectHTTPStatusError, httpx.HTTPError):
            await table.show(list(map(server_row, rows)), now=True)


def _changed(rows: list[ServerRecord], held: list[ServerRecord], news: asyncio.Event) -> None:
    rows[:] = held
    news.set()


async def _show(table: ServerTable, rows: list[ServerRecord], news: asyncio.Event) -> None:
    """Show what is new, for ever. A Prefect server that is away for a while does not end the run."""
    while True:
        await news.wait()
        news.clear()
        with contextlib.suppress(PrefectHTTPStatusError, httpx.HTTPError):
            await table.show(list(map(server_row, rows)))
        await asyncio.sleep(LOOK_SECONDS)


def _check(tensor_parallel_size: int | None, replicas: int, gpus: list[int] | None, minutes: int | None) -> None:
    least = {"tensor_parallel_size": tensor_parallel_size, "replicas": replicas, "minutes": minutes}
    for name, value in least.items():
        if value is not None and value < 1:
            raise ConfigurationError(f"{name} is {value}", remedy="give 1 or more, or leave it out")
    if gpus is not None and (min(gpus, default=0) < 0 or len(set(gpus)) < len(gpus)):
        raise ConfigurationError("gpus must be indexes, each once", remedy="such as [0, 1], or leave it out")
