"""The HTML report of one or more batches, from the ledger and the documents themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docmill.failures import ConfigurationError, DocmillError
from docmill.report import ReportData, ReportDocument, ReportFailure, ReportPage, render_report
from docmill.settings import Settings
from flows.endpoints import database_url
from flows.pictures import Pictures, open_pictures
from storage.queries import LedgerQueries, ReadPage

LONG_SIDE_PIXELS = 1300


async def write_report(
    settings: Settings,
    batches: Sequence[str],
    target: Path,
    *,
    title: str | None = None,
    command: str | None = None,
    most_pages: int = 200,
) -> ReportData:
    """Write the report of these batches to one self-contained HTML file.

    Args:
        settings: where ledger and documents are.
        batches: ids, beginnings of ids, or ``last``.
        target: the file.
        title: heading; the batches' ids when left out.
        command: how to make it anew, for the foot.
        most_pages: pages beyond that are listed without a picture.

    Raises:
        DocmillError: no such batch, Postgres away, or the file cannot be written.
    """
    async with LedgerQueries.connect(database_url(settings)) as queries, open_pictures(settings) as pictures:
        rows = [await queries.batch(name) for name in batches]
        documents: list[ReportDocument] = []
        left = most_pages
        for row in rows:
            for document in await queries.documents(row["batch_id"]):
                read = await queries.pages(document["reading_id"])
                documents.append(await _document(queries, pictures, document, read, left))
                left = max(0, left - len(read))
    engines = sorted({row["engine"] for row in rows})
    data = ReportData(
        title=title or "Batch " + ", ".join(str(row["batch_id"])[:8] for row in rows),
        source=", ".join(dict.fromkeys(row["source"] for row in rows)),
        engine=", ".join(engines),
        made_at=max(row["finished_at"] or row["heartbeat_at"] for row in rows),
        documents=tuple(documents),
        seconds=sum(row["seconds"] for row in rows) or None,
        unchanged=sum(row["documents_unchanged"] for row in rows),
        command=command or "docmill report " + " ".join(str(row["batch_id"])[:8] for row in rows),
    )
    try:
        await asyncio.to_thread(target.write_text, render_report(data), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write {target}: {error.strerror}", remedy="name another file") from error
    return data


async def _document(
    queries: LedgerQueries, pictures: Pictures, document: dict[str, Any], read: list[ReadPage], left: int
) -> ReportDocument:
    shown = [page.page_no for page in read[:left] if page.width]
    drawn = await pictures.pages(document, shown, long_side=LONG_SIDE_PIXELS) if shown else {}
    failure = None
    if not read:
        unopened = [row for row in await queries.failures(reading_id=document["reading_id"]) if row["page_no"] is None]
        failure = next((ReportFailure(row["code"], row["message"], row["remedy"]) for row in unopened), None)
    pages = []
    for page in read:
        picture = drawn.get(page.page_no)
        image = None if picture is None or isinstance(picture, DocmillError) else picture
        extraction = page.extraction
        pages.append(
            ReportPage(
                number=page.page_no,
                image=image.data if image else None,
                width=(image.width if image else page.width) or 1,
                height=(image.height if image else page.height) or 1,
                fields=extraction.fields if extraction else (),
                blocks=extraction.blocks if extraction else (),
                failure=_failure(page),
            )
        )
    return ReportDocument(document["key"], document["document_type"], tuple(pages), failure)


def _failure(page: ReadPage) -> ReportFailure | None:
    failure = page.failure
    return ReportFailure(failure.code, failure.message, failure.remedy) if failure else None
