"""``docmill evaluate``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from console.batches import as_type
from console.local import ready_to_run
from console.options import Json, Workers
from console.output import console, print_json, print_rows


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(evaluate)


def evaluate(
    dataset: Annotated[Path, typer.Argument(help="A folder with truth.jsonl (and words.jsonl).")],
    document_type: Annotated[str, typer.Option("--type", "-t", help="What to extract.")] = "generic",
    engine: Annotated[str, typer.Option("--engine", help="How pages are read.")] = "ocr",
    source: Annotated[
        str | None, typer.Option("--source", help="Where a copy of the set lies, such as s3://bucket/prefix.")
    ] = None,
    workers: Workers = None,
    misses: Annotated[bool, typer.Option("--misses", help="List what was read wrong, with the texts.")] = False,
    as_json: Json = False,
) -> None:
    """Read a set with known answers through the whole pipeline and score what came out.

    What was read before by the same version is not read again.
    """
    from docmill.evaluation import read_dataset

    known, document_type = read_dataset(dataset), as_type(document_type)
    if source is None and any(d.document_type == document_type for d in known.documents):
        known = known.of_type(document_type)
    settings = ready_to_run(quiet=as_json)
    from console.runs import run_flow
    from flows.evaluations import score_ledger, sources_of

    for each in sources_of(known, source):
        parameters = {
            "source": each, "document_type": document_type, "engine": engine,
            "workers": workers, "max_failure_rate": 1.0,
        }  # fmt: skip
        end = asyncio.run(run_flow(settings, "ingest", parameters, quiet=as_json))
        if not as_json:
            console.print(f"[dim]{escape(each)}: {escape(end.message)} ({end.seconds:.1f} s)[/]", highlight=False)
    report = asyncio.run(score_ledger(settings, known, source, document_type, engine))
    if as_json:
        print_json(report.as_json(with_misses=misses))
        return
    columns = ["field", "kind", "answers", "found", "exact", "anls"]
    if report.fields:
        print_rows([dict(zip(columns, row, strict=True)) for row in report.field_rows()], columns, as_json=False)
    print_rows(
        [{"measure": name, "value": value} for name, value in report.summary_rows()],
        ["measure", "value"],
        as_json=False,
    )
    for miss in report.misses if misses else ():
        console.print(escape(f"{miss.file} {miss.field}: {miss.truth!r} read as {miss.found!r}"), highlight=False)
