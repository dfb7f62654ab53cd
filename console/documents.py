"""``docmill show`` and ``docmill report``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from console import markdown
from console.local import read_ledger
from console.options import Json
from console.output import console, print_failures, print_json, print_rows, printable
from console.tables import cells_of, single_fields
from docmill.failures import ConfigurationError, DocumentNotFound
from docmill.settings import load_settings

if TYPE_CHECKING:
    from storage.queries import LedgerQueries

DOCUMENT_COLUMNS = ["document", "key", "status", "pages", "fields", "review", "failed", "confidence"]
FIELD_COLUMNS = ["page_no", "name", "value", "confidence", "needs_review", "notes"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (show, report):
        app.command()(command)


def show(
    what: Annotated[
        str, typer.Argument(help="A document (key, file name, id) or a batch (id, 'last'); ids may be cut short.")
    ] = "last",
    page: Annotated[int | None, typer.Option("--page", "-p", min=1, help="Only this page.")] = None,
    document_type: Annotated[str | None, typer.Option("--type", "-t", help="Only as read as this type.")] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    overlay: Annotated[
        Path | None, typer.Option("--overlay", help="Draw the boxes on the page and write this PNG.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a document's fields, or the documents of a batch."""

    async def read(queries: LedgerQueries) -> dict[str, Any]:
        return await _found(queries, what, document_type, page)

    found = read_ledger(read)
    if overlay is not None:
        if "document" not in found:
            raise ConfigurationError("--overlay draws one document's page", remedy="name a document, not a batch")
        _draw(found, page or 1, overlay)
    if as_json:
        print_json(found)
    elif as_markdown:
        typer.echo(markdown.batch(found) if "batch" in found else markdown.document(found))
    elif "batch" in found:
        _show_batch(found)
    else:
        _show_document(found)


async def _found(queries: LedgerQueries, what: str, document_type: str | None, page: int | None) -> dict[str, Any]:
    document = None
    if what != "last":
        try:
            document = await queries.document(what, document_type=document_type)
        except DocumentNotFound:
            document = None
    if document is None:
        try:
            batch = await queries.batch(what)
        except ConfigurationError as error:
            if what == "last" or "several" in error.message:
                raise
            raise DocumentNotFound(
                f"there is no document and no batch {what!r}", remedy="see: docmill batches, docmill show last"
            ) from None
        return {
            "batch": batch,
            "documents": await queries.documents(batch["batch_id"]),
            "failures": await queries.failures(batch["batch_id"]),
        }
    pages = await queries.pages(document["reading_id"], page)
    if page is not None and document["page_count"] and page > document["page_count"]:
        raise DocumentNotFound(
            f"{document['key']} has {document['page_count']} pages", remedy="give --page a number up to that"
        )
    return {
        "document": document,
        "fields": await queries.fields(document["reading_id"], page),
        "pages": pages,
        "failures": await queries.failures(reading_id=document["reading_id"]),
    }


def _show_batch(found: dict[str, Any]) -> None:
    batch = found["batch"]
    console.print(
        f"[bold]batch {str(batch['batch_id'])[:8]}[/] {batch['status']}: {escape(batch['source'])} "
        f"as {batch['document_type']}"
    )
    print_rows(
        [_document_row(row) for row in found["documents"]], DOCUMENT_COLUMNS, as_json=False,
        empty="no documents of its own: nothing was new",
    )  # fmt: skip
    moved = batch["documents_total"] - len(found["documents"])
    if moved > 0:
        console.print(f"[dim]{moved} more were taken up again by later batches: docmill batches[/]")
    print_failures(found["failures"], title="failures")


def _document_row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "document": str(row["document_id"])[:8],
        "key": row["key"],
        "status": row["status"],
        "pages": row["page_count"],
        "fields": row["fields"],
        "review": row["fields_to_review"],
        "failed": row["open_failures"],
        "confidence": row["confidence"],
    }


def _show_document(found: dict[str, Any]) -> None:
    document = found["document"]
    console.print(
        f"[bold]{escape(printable(document['key']))}[/] {document['status']}, {document['page_count'] or 0} pages, "
        f"read as {document['document_type']} ({document['engine']}), document {str(document['document_id'])[:8]}"
    )
    print_rows(single_fields(found["fields"]), FIELD_COLUMNS, as_json=False, empty="no fields")
    for table, (columns, rows) in cells_of(found["fields"]).items():
        print_rows(rows, columns, as_json=False, title=table)
    print_failures(found["failures"], title="failures")


def _draw(found: dict[str, Any], page_no: int, target: Path) -> None:
    import io

    from PIL import Image

    from docmill.drawing import draw_boxes
    from flows.pictures import open_pictures

    page = next((each for each in found["pages"] if each.page_no == page_no), None)
    if page is None:
        raise DocumentNotFound(f"page {page_no} has not been read", remedy="see: docmill failures")

    async def picture() -> Any:
        async with open_pictures(load_settings()) as pictures:
            return (await pictures.pages(found["document"], [page_no], long_side=2400))[page_no]

    drawn = asyncio.run(picture())
    if isinstance(drawn, Exception):
        raise drawn
    fields = page.extraction.fields if page.extraction else ()
    blocks = page.extraction.blocks if page.extraction else ()
    image = draw_boxes(Image.open(io.BytesIO(drawn.data)), fields, blocks)
    try:
        image.save(target)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot write {target}: {error}", remedy="name a .png file in a folder you own"
        ) from error


def report(
    batch: Annotated[list[str] | None, typer.Argument(help="Batches by id, the beginning of it, or 'last'.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    pages: Annotated[int, typer.Option("--pages", min=0, help="At most so many page pictures in the file.")] = 200,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML file: every page with its fields drawn as boxes, and the values beside it."""
    from flows.reports import report_of_batches

    written = asyncio.run(report_of_batches(load_settings(), batch or ["last"], out, most_pages=pages))
    if as_json:
        print_json({"file": out.resolve(), "documents": len(written.documents), "pages": written.pages})
    else:
        console.print(escape(f"{out.resolve()} ({len(written.documents)} documents, {written.pages} pages)"))
