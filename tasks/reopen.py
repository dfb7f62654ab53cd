"""Reopen: put what failed in a batch back to work."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from docmill.ledger import Batch
from tasks.patience import patiently
from tasks.resources import Resources


async def reopen_failures(
    resources: Resources,
    again: Batch,
    source_batch: UUID,
    source_version: str,
    *,
    codes: Sequence[str],
    document: str | None,
    limit: int | None,
) -> int:
    """Put what failed in a batch to work in another; returns how many failures, or documents.

    Where document type or engine have changed since, the old pages are another version's work: the documents that
    failed are then read anew, whole, under the present version.
    """
    patience = resources.settings.pipeline.transient_patience_seconds
    if again.spec.extractor_version == source_version:
        return await patiently(
            lambda: resources.ledger.reopen_failed(
                again.id, source_batch=source_batch, codes=codes, document_key=document, limit=limit
            ),
            patience,
        )
    refs = await patiently(
        lambda: resources.queries.failed_objects(source_batch, codes=codes, key=document, limit=limit), patience
    )
    added = await patiently(lambda: resources.ledger.add_documents(again.id, refs), patience)
    return added.new + added.resumed
