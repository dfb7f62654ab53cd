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
    *,
    codes: Sequence[str],
    document: str | None,
    limit: int | None,
) -> int:
    """Put the failed pages and unopened documents of a batch to work in another; how many."""
    return await patiently(
        lambda: resources.ledger.reopen_failed(
            again.id, source_batch=source_batch, codes=codes, document_key=document, limit=limit
        ),
        resources.settings.pipeline.transient_patience_seconds,
    )
