"""``docmill ingest``, ``reprocess``, ``batches`` and ``failures``."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from console.local import read_ledger, ready_to_run
from console.options import Here, Json, Limit, MaxFailureRate, Workers
from console.outcome import Exit
from console.output import console, print_failures, print_json, print_rows
from docmill.places import whole_path

if TYPE_CHECKING:
    from console.runs import FlowName
    from docmill.settings import Settings

BATCH_COLUMNS = ["batch", "status", "type", "when", "new", "same", "pages", "open", "source"]
SOURCE_WIDTH = 24
WIDE = 100


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (ingest, reprocess, batches, failures):
        app.command()(command)


def ingest(
    source: Annotated[str, typer.Argument(help="s3://bucket/prefix, a folder or a file.")],
    document_type: Annotated[
        str, typer.Option("--type", "-t", help="What to extract; see: docmill types.")
    ] = "generic",
    engine: Annotated[str, typer.Option("--engine", help="How pages are read.")] = "ocr",
    limit: Limit = None,
    force: Annotated[bool, typer.Option("--force", help="Read again what was read already.")] = False,
    max_failure_rate: MaxFailureRate = None,
    workers: Workers = None,
    here: Here = False,
    as_json: Json = False,
) -> None:
    """Read every document under SOURCE that has not been read yet."""
    parameters: dict[str, Any] = {
        "source": source if ":/" in source else str(whole_path(source)),
        "document_type": as_type(document_type),
        "engine": engine,
        "limit": limit,
        "force": force,
        "max_failure_rate": max_failure_rate,
        "workers": workers,
    }
    settings = ready_to_run(quiet=as_json)
    from flows.precheck import check_ingestion

    local = here or settings.prefect.api_url is None
    asyncio.run(check_ingestion(settings, parameters["source"], document_type, engine, local=local))
    _run(settings, "ingest", parameters, here=here, as_json=as_json)


def as_type(name: str) -> str:
    """A document type's name as any process understands it: a file's path made absolute."""
    return str(whole_path(name)) if name.endswith((".yaml", ".yml")) else name


def reprocess(
    batch: Annotated[str, typer.Argument(help="Id of the batch, its beginning, or 'last'.")] = "last",
    codes: Annotated[
        list[str] | None, typer.Option("--code", help="Only failures with this code; may be repeated.")
    ] = None,
    document: Annotated[str | None, typer.Option("--document", help="Only the document with this key.")] = None,
    limit: Limit = None,
    max_failure_rate: MaxFailureRate = None,
    workers: Workers = None,
    here: Here = False,
    as_json: Json = False,
) -> None:
    """Try what failed in a batch again."""
    parameters = {
        "batch": batch,
        "codes": codes or None,
        "document": document,
        "limit": limit,
        "max_failure_rate": max_failure_rate,
        "workers": workers,
    }
    settings = ready_to_run(quiet=as_json)
    read_ledger(lambda queries: queries.batch(batch))  # refused here, not in a run, where there is none
    _run(settings, "reprocess-failed", parameters, here=here, as_json=as_json)


def _run(settings: Settings, name: FlowName, parameters: dict[str, Any], *, here: bool, as_json: bool) -> None:
    # Prefect takes a while to import, and reads which server to use only then
    from console.runs import run_flow

    end = asyncio.run(run_flow(settings, name, parameters, here=here, quiet=as_json))
    failed = read_ledger(lambda q: q.failures(end.batch_id, limit=20)) if end.batch_id else []
    if as_json:
        print_json({"flow_run_id": end.flow_run_id, "batch_id": end.batch_id, "state": end.state,
                    "message": end.message, "seconds": round(end.seconds, 2), "counts": end.counts,
                    "failures": failed})  # fmt: skip
    else:
        colour = {"Completed": "green", "Failed": "red"}.get(end.state, "yellow")
        console.print(
            f"[bold {colour}]{escape(end.state.lower())}[/]: {escape(end.message)} [dim]({end.seconds:.1f} s)[/]"
        )
        print_failures(failed)
        if end.batch_id and (end.counts.documents_total or failed):
            console.print(f"see: docmill show {str(end.batch_id)[:8]}", style="dim")
    if end.state not in ("Completed", "Failed") and not as_json:
        console.print("what to do: the same command again goes on with this batch", style="dim")
    if end.state != "Completed":
        raise typer.Exit(Exit.BATCH_FAILED)


def batches(
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 20, as_json: Json = False
) -> None:
    """The latest batches."""
    rows = read_ledger(lambda queries: queries.batches(limit))
    shown = rows if as_json else [_batch_row(row) for row in rows]
    columns = BATCH_COLUMNS if console.width >= WIDE else [name for name in BATCH_COLUMNS if name != "when"]
    print_rows(shown, columns, as_json=as_json, empty="there is no batch yet; begin with: docmill ingest SOURCE")


def _batch_row(row: dict[str, Any]) -> dict[str, Any]:
    source = row["source"].rstrip("/")
    return {
        "batch": str(row["batch_id"])[:8],
        "status": row["status"],
        "type": row["document_type"],
        "when": row["created_at"].astimezone().strftime("%m-%d %H:%M"),
        "new": row["documents_total"],
        "same": row["documents_unchanged"],
        "pages": f"{row['pages_done']}/{row['pages_total']}",
        "open": row["open_failures"],
        # the end of it tells sources apart; all of it is in the JSON
        "source": source if len(source) <= SOURCE_WIDTH else "…" + source[-SOURCE_WIDTH + 1 :],
    }


def failures(
    batch: Annotated[
        str | None, typer.Argument(help="Id of a batch, its beginning, or 'last'; none: all open failures.")
    ] = None,
    code: Annotated[str | None, typer.Option("--code", help="Only this code.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 200,
    as_json: Json = False,
) -> None:
    """What is broken now, and what to do about it."""

    async def read(queries: Any) -> list[dict[str, Any]]:
        batch_id = (await queries.batch(batch))["batch_id"] if batch else None
        return list(await queries.failures(batch_id, code=code, limit=limit))

    rows = read_ledger(read)
    if as_json or not rows:
        print_rows(rows, [], as_json=as_json, empty="no open failures")
    else:
        print_failures(rows)
        told = ", ".join(f"{count} {each}" for each, count in Counter(row["code"] for row in rows).most_common())
        console.print(f"{told}; try again with: docmill reprocess [BATCH] [--code CODE]", style="dim")
