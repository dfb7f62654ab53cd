"""The HTML report of one or more batches, from the ledger and the documents themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from docmill.failures import ConfigurationError, DocmillError
from docmill.report import ReportData, ReportDocument, ReportFailure, ReportPage, render_report
from docmill.settings import Settings
from flows.endpoints import database_url
from flows.pictures import Pictures, open_pictures
from storage.queries import LedgerQueries, ReadPage

LONG_SIDE_PIXELS = 1300


async def report_of_batches(
    settings: Settings, names: Sequence[str], target: Path, *, most_pages: int = 200
) -> ReportData:
    """Write the report of these batches to one self-contained HTML file.

    Args:
        settings: where ledger and documents are.
        names: ids, beginnings of ids, or ``last``.
        target: the file.
        most_pages: pages beyond that are listed without a picture.

    Raises:
        DocmillError: no such batch, Postgres away, or the file cannot be written.
    """
    async with LedgerQueries.connect(database_url(settings)) as queries:
        batches = [await queries.batch(name) for name in names]
        documents = [row for batch in batches for row in await queries.documents(batch["batch_id"])]
        short = " ".join(str(batch["batch_id"])[:8] for batch in batches)
        facts = ReportData(
            title=f"Batch {short}",
            source=", ".join(dict.fromkeys(batch["source"] for batch in batches)),
            engine=", ".join(sorted({batch["engine"] for batch in batches})),
            made_at=max(batch["finished_at"] or batch["heartbeat_at"] for batch in batches),
            documents=(),
            seconds=sum(batch["seconds"] for batch in batches) or None,
            unchanged=sum(batch["documents_unchanged"] for batch in batches),
            command=f"docmill report {short}",
        )
        return await write_report(settings, queries, facts, documents, target, most_pages=most_pages)


async def write_report(
    settings: Settings,
    queries: LedgerQueries,
    facts: ReportData,
    documents: Sequence[dict[str, Any]],
    target: Path,
    *,
    most_pages: int,
) -> ReportData:
    """Write the report of these documents (rows of ``v_documents``) under the heading that ``facts`` gives."""
    drawn: list[ReportDocument] = []
    left = most_pages
    async with open_pictures(settings) as pictures:
        for document in documents:
            read = await queries.pages(document["reading_id"])
            drawn.append(await _document(queries, pictures, document, read, left))
            left = max(0, left - len(read))
    data = replace(facts, documents=tuple(drawn))
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
