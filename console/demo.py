"""``docmill demo``: the main job on the bundled samples, from nothing to rows."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from console.outcome import Exit
from console.output import console, print_failures, print_rows
from console.tables import single_fields
from docmill.settings import Settings, load_settings

if TYPE_CHECKING:
    from flows.samples import SampleSource

SHOWN = {
    "receipt": ["company", "date", "total"],
    "invoice": ["issuer", "invoice_no", "date", "total"],
    "application_form": ["name", "date_of_birth", "marital_status", "phone"],
}
"""The fields that the tables show; the others are counted."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML report to write.")] = Path("demo-report.html"),
) -> None:
    """Read the bundled sample scans: start the local stack, upload, ingest, show the rows, write a report."""
    began = time.monotonic()
    settings = load_settings()
    _start(settings)
    from flows.samples import upload_samples

    samples = asyncio.run(upload_samples(settings))
    console.print(
        f"[bold]samples[/]    {sum(s.files for s in samples)} documents in "
        f"s3://{escape(settings.objects.bucket)}/samples/, {sum(s.uploaded for s in samples)} of them uploaded now",
        highlight=False,
    )
    ends = [_ingest(settings, sample) for sample in samples]
    documents, failures, pages = asyncio.run(_results(settings, samples, out))
    new = sum(end.counts.documents_total for end in ends)
    console.print()
    for sample in samples:
        rows = [row for row in documents if row["type"] == sample.document_type]
        print_rows(rows, ["document", "pages", *SHOWN[sample.document_type], "values"], as_json=False,
                   title=sample.document_type)  # fmt: skip
        console.print()
    print_failures(failures, title="failures (one sample is broken on purpose)")
    console.print()
    if not new:
        console.print("[bold green]nothing is new[/]: every document had been read before", highlight=False)
    ui = _prefect_ui(settings)
    console.print(f"[bold]report[/]     {escape(str(out.resolve()))} ({pages} pages)", highlight=False)
    console.print(f"[bold]prefect[/]    {ui}", highlight=False)
    console.print(
        "[bold]look at[/]    docmill batches · docmill show receipt-01.jpg · docmill failures · docmill status"
    )
    console.print(f"[dim]{time.monotonic() - began:.0f} s; the local stack keeps running: docmill down ends it[/]")
    if any(end.state != "Completed" for end in ends):
        raise typer.Exit(Exit.BATCH_FAILED)


def _start(settings: Settings) -> None:
    from flows.bringing_up import bring_up

    console.print("[bold]local stack[/]")
    bring_up(settings, say=lambda told: console.print(f"  {told}", highlight=False))


def _ingest(settings: Settings, sample: SampleSource) -> Any:
    from console.runs import run_flow

    parameters = {"source": sample.source, "document_type": sample.document_type, "engine": "ocr"}
    end = asyncio.run(run_flow(settings, "ingest", parameters))
    colour = "green" if end.state == "Completed" else "red"
    console.print(
        f"[bold]ingest[/]  {sample.source} as {sample.document_type}: [{colour}]{end.state.lower()}[/], "
        f"{escape(end.message)} [dim]({end.seconds:.1f} s)[/]", highlight=False,
    )  # fmt: skip
    return end


async def _results(
    settings: Settings, samples: list[SampleSource], out: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    from docmill.report import ReportData
    from flows.endpoints import database_url
    from flows.reports import write_report
    from storage.objects.sources import parse_source
    from storage.queries import LedgerQueries

    async with LedgerQueries.connect(database_url(settings)) as queries:
        found, shown, failures = [], [], []
        for sample in samples:
            place = parse_source(sample.source)
            found += await queries.documents_under(place.bucket, place.prefix, document_type=sample.document_type)
        for row in found:
            fields = await queries.fields(row["reading_id"])
            failures += await queries.failures(reading_id=row["reading_id"])
            shown.append(_document_row(row, fields))
        facts = ReportData(
            title="Sample scans",
            source=f"s3://{settings.objects.bucket}/samples/",
            engine="ocr",
            made_at=datetime.now(UTC),
            documents=(),
            command="docmill demo",
        )
        written = await write_report(settings, queries, facts, found, out, most_pages=100)
    return shown, failures, written.pages


def _document_row(row: dict[str, Any], fields: list[dict[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in single_fields(fields):
        values.setdefault(field["name"], field["value"])
    return {
        **values,
        "document": row["key"].rpartition("/")[2],
        "type": row["document_type"],
        "pages": row["page_count"] if row["status"] != "failed" else row["status"],
        "values": len(fields),
    }


def _prefect_ui(settings: Settings) -> str:
    from flows.local_prefect import LocalPrefect

    return (settings.prefect.api_url or LocalPrefect(settings.data_dir).api_url).removesuffix("/api")
