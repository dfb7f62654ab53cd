"""Starting a flow run and following it in the ledger until it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import httpx
from prefect import Flow
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import arun_deployment
from prefect.exceptions import ObjectNotFound
from prefect.flow_engine import run_flow as run_flow_here
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from console.output import console
from docmill.failures import ServerNotReady, TransientError
from docmill.ledger import BatchCounts
from docmill.settings import Settings
from flows.endpoints import carried_environment, database_url
from flows.ingest import ingest
from flows.reprocess_failed import reprocess_failed
from storage.ledger.database import Database
from storage.ledger.postgres import PostgresLedger
from storage.queries import LedgerQueries

FlowName = Literal["ingest", "reprocess-failed"]
FLOWS: dict[FlowName, Flow[Any, Any]] = {"ingest": ingest, "reprocess-failed": reprocess_failed}
WORKER_SILENT_SECONDS = 45.0
LOOK_EVERY_SECONDS = 0.4
SERVER_AWAY_SECONDS = 30.0
CAUGHT = "Flow run encountered an exception: "


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a flow run ended.

    Attributes:
        state: Prefect's name of it.
        batch_id: None where it ended before it had a batch.
    """

    flow_run_id: UUID
    state: str
    message: str
    batch_id: UUID | None
    counts: BatchCounts
    seconds: float


async def run_flow(
    settings: Settings, name: FlowName, parameters: dict[str, Any], *, here: bool = False, quiet: bool = False
) -> RunEnd:
    """Run a flow and show its progress by page until it ends.

    Args:
        settings: which servers.
        name: of the flow, which is its deployment's name too.
        parameters: of the flow.
        here: in this process instead of through a worker.
        quiet: no progress bar.

    Raises:
        ServerNotReady: Prefect does not answer or has no such deployment.
        DatabaseUnavailable: Postgres does not answer.
    """
    began = time.monotonic()
    async with Database(database_url(settings), pool_size=2) as database, _client() as client:
        ledger, queries = PostgresLedger(database), LedgerQueries(database)
        # another machine's worker has settings of its own
        environment = {} if settings.prefect.api_url else carried_environment(settings)
        run, work = await _start(client, name, parameters, environment, here=here)
        try:
            with _bar(quiet) as show:
                state, message = await _follow(client, ledger, queries, run.id, work, show)
        finally:
            if work is not None and not work.done():
                work.cancel()
                await asyncio.wait([work])
        batch_id = await queries.batch_of_run(run.id)
        counts = await ledger.counts(batch_id) if batch_id else BatchCounts()
    return RunEnd(run.id, state, message, batch_id, counts, time.monotonic() - began)


@contextlib.asynccontextmanager
async def _client() -> Any:
    try:
        async with get_client() as client:
            yield client
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ServerNotReady(
            "the Prefect server does not answer", remedy="docmill up, or docmill config check"
        ) from error


async def _start(
    client: PrefectClient, name: FlowName, parameters: dict[str, Any], environment: dict[str, str], *, here: bool
) -> tuple[FlowRun, asyncio.Task[Any] | None]:
    if here:
        flow = FLOWS[name]
        run = await client.create_flow_run(flow, parameters=parameters)
        logging.getLogger("prefect").setLevel(logging.WARNING)
        running: Any = run_flow_here(flow, flow_run=run, parameters=parameters, return_type="state")
        return run, asyncio.ensure_future(running)
    try:
        return await arun_deployment(
            f"{name}/{name}",
            client=client,
            parameters=parameters,
            timeout=0,
            as_subflow=False,
            job_variables={"env": environment} if environment else None,
        ), None
    except ObjectNotFound as error:
        raise ServerNotReady(
            f"the Prefect server has no deployment {name}/{name}",
            remedy="docmill up registers it; --here runs it in this process",
        ) from error


async def _follow(
    client: PrefectClient,
    ledger: PostgresLedger,
    queries: LedgerQueries,
    run_id: UUID,
    work: asyncio.Task[Any] | None,
    show: Callable[[BatchCounts], None],
) -> tuple[str, str]:
    """Until the run's state is final; its name and message."""
    patience = time.monotonic() + WORKER_SILENT_SECONDS
    away_since: float | None = None
    while True:
        try:
            state = (await client.read_flow_run(run_id)).state
            away_since = None
        except httpx.HTTPError as error:
            # Prefect's server, or the database below it, is away: the run itself may well go on
            if isinstance(error, httpx.HTTPStatusError) and error.response.status_code < 500:
                raise
            away_since = away_since or time.monotonic()
            if time.monotonic() - away_since > SERVER_AWAY_SECONDS:
                raise ServerNotReady(
                    "the Prefect server does not answer",
                    remedy="docmill up, then the same command again: it goes on with the same batch",
                ) from error
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            continue
        with contextlib.suppress(TransientError):
            batch_id = await queries.batch_of_run(run_id)
            if batch_id is not None:
                show(await ledger.counts(batch_id))
        if state is not None and state.is_final():
            return state.name or state.type.value, (state.message or "").removeprefix(CAUGHT)
        if work is not None and work.done():
            work.result()
        if (state is None or state.is_scheduled()) and time.monotonic() > patience:
            console.print(f"the run waits: {_why_waiting(state)}", style="yellow")
            patience = float("inf")
        await asyncio.sleep(LOOK_EVERY_SECONDS)


def _why_waiting(state: State[Any] | None) -> str:
    if state is not None and state.name == "AwaitingConcurrencySlot":
        return "another run of this deployment is not over yet (one that was killed is given up after 90 s)"
    return "no worker has taken it yet. See: docmill status"


@contextlib.contextmanager
def _bar(quiet: bool) -> Any:
    if quiet or not console.is_terminal:
        yield lambda counts: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("waiting for a worker", total=None)

        def show(counts: BatchCounts) -> None:
            told = f"pages of {counts.documents_total} documents"
            if counts.pages_failed or counts.documents_unopened:
                told += f", {counts.pages_failed + counts.documents_unopened} failed"
            progress.update(bar, description=told, total=counts.pages_total or None, completed=counts.pages_finished)

        yield show
