"""Reopening: what failed goes back to work, as another batch's."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.ledger.batches import batch_row, take_turn

_FAILED = text("""
SELECT f.scope, f.reading_id, f.page_id
FROM failures f
JOIN readings r ON r.id = f.reading_id
JOIN documents d ON d.id = f.document_id
LEFT JOIN pages p ON p.id = f.page_id
WHERE f.resolved_at IS NULL AND r.extractor_version = :version
    AND (CAST(:source AS uuid) IS NULL OR f.batch_id = :source)
    AND (cardinality(CAST(:codes AS text[])) = 0 OR f.code = ANY(CAST(:codes AS text[])))
    AND (CAST(:key AS text) IS NULL OR d.key = :key)
    AND CASE f.scope WHEN 'page' THEN p.status = 'failed' AND r.status <> 'pending' ELSE r.status = 'failed' END
ORDER BY f.created_at, f.id
LIMIT CAST(:limit AS bigint)
""")

_HOLD = text("SELECT id FROM readings WHERE id = ANY(:readings) ORDER BY id FOR NO KEY UPDATE")

_DOCUMENTS = text("""
UPDATE readings
SET status = 'pending', batch_id = :batch, crashes = 0, merged_at = NULL, lease_holder = NULL, lease_expires_at = NULL
WHERE id = ANY(:readings) AND status = 'failed'
RETURNING id
""")

_PAGES = text("""
UPDATE pages
SET status = 'pending', batch_id = :batch, attempts = 0, crashes = 0, server_crashes = 0, finished_at = NULL
WHERE id = ANY(:pages) AND status = 'failed'
RETURNING reading_id
""")

# A document that is still being read moves as a whole, or its last pages would be waited for by nobody.
_SIBLINGS = text("""
UPDATE pages SET batch_id = :batch
WHERE reading_id = ANY(:readings) AND status IN ('pending', 'claimed') AND batch_id <> :batch
""")

_READINGS = text("""
UPDATE readings SET status = 'opened', batch_id = :batch, merged_at = NULL WHERE id = ANY(:readings)
""")


async def reopen(
    connection: AsyncConnection,
    batch_id: UUID,
    *,
    source_batch: UUID | None,
    codes: Sequence[str],
    document_key: str | None,
    limit: int | None,
) -> int:
    """Put failed pages and unopened documents back to work; how many."""
    batch = await batch_row(connection, batch_id)
    await take_turn(connection, f"intake:{batch.extractor_version}")
    found = (
        await connection.execute(
            _FAILED,
            {
                "version": batch.extractor_version,
                "source": source_batch,
                "codes": list(codes),
                "key": document_key,
                "limit": limit,
            },
        )
    ).all()
    if not found:
        return 0
    held = {"readings": sorted({row.reading_id for row in found}), "batch": batch_id}
    await connection.execute(_HOLD, held)
    unopened = [row.reading_id for row in found if row.scope == "document"]
    reopened = len(list(await connection.execute(_DOCUMENTS, {"readings": unopened, "batch": batch_id})))
    pages = [row.page_id for row in found if row.scope == "page"]
    readings = list((await connection.execute(_PAGES, {"pages": pages, "batch": batch_id})).scalars())
    begun = {"readings": sorted(set(readings)), "batch": batch_id}
    if readings:
        await connection.execute(_SIBLINGS, begun)
        await connection.execute(_READINGS, begun)
    return reopened + len(readings)
