"""Merge: fold the pages of a finished document into its result."""

from __future__ import annotations

from uuid import UUID

from docmill.merging import merge_pages
from tasks.patience import patiently
from tasks.resources import Resources


async def merge_document(resources: Resources, reading_id: UUID, document_type: str) -> None:
    """Merge the pages of one reading and record the result. Doing it twice gives the same row."""
    patience = resources.settings.pipeline.transient_patience_seconds
    pages = await patiently(lambda: resources.ledger.finished_pages(reading_id), patience)
    result, confidence = merge_pages(pages, resources.document_type(document_type))
    await patiently(lambda: resources.ledger.record_result(reading_id, result, confidence), patience)
