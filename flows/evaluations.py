"""Scoring what the ledger holds against a set with known answers."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from docmill.document_types import load_document_type
from docmill.evaluation import Dataset, DocumentOutcome, EvaluationReport, PageOutcome, score
from docmill.settings import Settings
from docmill.versions import extractor_version
from flows.endpoints import database_url
from flows.resources import make_extractor
from serving.ocr_engine import text_of
from storage.objects.sources import Source, parse_source
from storage.queries import LedgerQueries


def sources_of(dataset: Dataset, source: str | None) -> list[str]:
    """What to ingest: each folder that holds documents of the set (not the files with its answers), below ``source``.

    Args:
        dataset: its documents name files relative to its folder.
        source: where a copy of the set lies, such as ``s3://bucket/prefix``; the set's own folder when left out.
    """
    root = (source or str(dataset.folder.resolve())).rstrip("/")
    folders = sorted({str(PurePosixPath(document.file).parent) for document in dataset.documents})
    return [root if folder == "." else f"{root}/{folder}/" for folder in folders]


async def score_ledger(
    settings: Settings, dataset: Dataset, source: str | None, document_type: str, engine: str
) -> EvaluationReport:
    """Score what was read under the present extractor_version.

    A document that the ledger does not have, or that failed, counts as wrong.
    """
    kind = load_document_type(document_type, settings.pipeline.document_types)
    version = extractor_version(kind, engine, make_extractor(engine, settings).fingerprint)
    root = source or str(dataset.folder.resolve())
    async with LedgerQueries.connect(database_url(settings)) as queries:
        rows: dict[str, dict[str, Any]] = {}
        for each in sources_of(dataset, source):
            place = parse_source(each)
            for row in await queries.documents_under(place.bucket, place.prefix, extractor_version=version):
                rows[_address(place, row["key"])] = row
        outcomes = []
        for document in dataset.documents:
            found = rows.get(f"{root.rstrip('/')}/{document.file}")
            if found is not None:
                outcomes.append(await _outcome(queries, document.file, found))
    return score(dataset, outcomes, kind)


def _address(place: Source, key: str) -> str:
    return f"s3://{place.bucket}/{key}" if str(place).startswith("s3://") else f"{place.bucket}/{key}"


async def _outcome(queries: LedgerQueries, file: str, row: dict[str, Any]) -> DocumentOutcome:
    pages = await queries.pages(row["reading_id"])
    if not pages:
        failures = await queries.failures(reading_id=row["reading_id"])
        return DocumentOutcome(file, failure=failures[0]["code"] if failures else "not_read")
    seconds = await queries.page_seconds(row["reading_id"])
    return DocumentOutcome(
        file,
        tuple(
            PageOutcome(
                page.page_no,
                page.extraction,
                page.failure.code if page.failure else None,
                text=text_of(page.extraction) if page.extraction else None,
                seconds=seconds.get(page.page_no),
            )
            for page in pages
        ),
    )
