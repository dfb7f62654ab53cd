"""Intake: a listing becomes documents and work for a batch, ten thousand objects in three statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.ledger import Added
from docmill.ports import ObjectRef
from storage.ledger.batches import batch_row, take_turn
from storage.ledger.codec import clean_text, dump_json

AT_ONCE = 10_000

# An unchanged object keeps its row untouched: a daily listing of a million old ones must not rewrite them.
_DOCUMENTS = text("""
INSERT INTO documents (bucket, key, etag, version_id, size, content_type, last_modified, metadata)
SELECT bucket, key, etag, version_id, size, content_type, last_modified, CAST(metadata AS jsonb)
FROM unnest(
    CAST(:bucket AS text[]), CAST(:key AS text[]), CAST(:etag AS text[]), CAST(:version_id AS text[]),
    CAST(:size AS bigint[]), CAST(:content_type AS text[]), CAST(:last_modified AS timestamptz[]),
    CAST(:metadata AS text[])
) AS listed (bucket, key, etag, version_id, size, content_type, last_modified, metadata)
ORDER BY bucket, key, etag
ON CONFLICT (bucket, key, etag) DO UPDATE
SET version_id = excluded.version_id, last_modified = excluded.last_modified
WHERE documents.version_id IS DISTINCT FROM excluded.version_id
    OR documents.last_modified IS DISTINCT FROM excluded.last_modified
""")

# The parts of a WITH see the same snapshot: a reading that is inserted here is not seen as one to be resumed.
_READINGS = text("""
WITH listed AS (
    SELECT documents.id, n
    FROM unnest(CAST(:bucket AS text[]), CAST(:key AS text[]), CAST(:etag AS text[]))
        WITH ORDINALITY AS listed (bucket, key, etag, n)
    JOIN documents USING (bucket, key, etag)
), added AS (
    INSERT INTO readings (document_id, extractor_version, document_type, engine, batch_id, forced)
    SELECT id, :version, :document_type, :engine, :batch, :force FROM listed ORDER BY n
    ON CONFLICT (document_id, extractor_version) DO NOTHING
    RETURNING id
), resumed AS (
    UPDATE readings SET batch_id = :batch, forced = forced OR :force
    FROM listed
    WHERE readings.document_id = listed.id AND extractor_version = :version AND status IN ('pending', 'opened')
    RETURNING readings.id
), forced AS (
    UPDATE readings
    SET batch_id = :batch, forced = true, status = 'pending', page_count = NULL, merged_at = NULL, crashes = 0
    FROM listed
    WHERE :force AND readings.document_id = listed.id AND extractor_version = :version
        AND status IN ('done', 'partial', 'failed')
        -- what this batch was made to read again it has read: once is enough when it is gone on with
        AND NOT (batch_id = :batch AND forced)
    RETURNING readings.id
)
SELECT (SELECT count(*) FROM listed) AS listed, (SELECT count(*) FROM added) AS new,
    (SELECT count(*) FROM forced) AS forced, ARRAY(SELECT id FROM resumed) AS resumed,
    (
        SELECT count(*) FROM readings JOIN listed ON readings.document_id = listed.id
        WHERE extractor_version = :version AND batch_id = :batch AND status IN ('done', 'partial', 'failed')
            AND NOT (:force AND NOT forced)
    ) AS own
""")

_PAGES = text("""
UPDATE pages SET batch_id = :batch
WHERE id IN (
    SELECT id FROM pages WHERE reading_id = ANY(:readings) AND batch_id <> :batch ORDER BY id FOR NO KEY UPDATE
)
""")

_UNCHANGED = text("UPDATE batches SET documents_unchanged = documents_unchanged + :unchanged WHERE id = :batch")


def chunks(refs: Sequence[ObjectRef]) -> Iterator[Sequence[ObjectRef]]:
    """The listing without repetitions, in pieces of :data:`AT_ONCE`."""
    unique = list({(ref.bucket, ref.key, ref.etag): ref for ref in refs}.values())
    for start in range(0, len(unique), AT_ONCE):
        yield unique[start : start + AT_ONCE]


def _columns(refs: Sequence[ObjectRef]) -> dict[str, list[Any]]:
    return {
        "bucket": [clean_text(ref.bucket) for ref in refs],
        "key": [clean_text(ref.key) for ref in refs],
        "etag": [clean_text(ref.etag) for ref in refs],
        "version_id": [ref.version_id for ref in refs],
        "size": [ref.size for ref in refs],
        "content_type": [None if ref.content_type is None else clean_text(ref.content_type) for ref in refs],
        "last_modified": [ref.last_modified for ref in refs],
        "metadata": [dump_json(ref.metadata) for ref in refs],
    }


async def add(connection: AsyncConnection, batch_id: UUID, refs: Sequence[ObjectRef], *, force: bool) -> Added:
    """Add at most :data:`AT_ONCE` objects, each named once."""
    batch = await batch_row(connection, batch_id)
    # Two batches that list the same objects would take each other's rows in different orders.
    await take_turn(connection, f"intake:{batch.extractor_version}")
    columns = _columns(refs)
    await connection.execute(_DOCUMENTS, columns)
    found = (
        await connection.execute(
            _READINGS,
            {
                "bucket": columns["bucket"],
                "key": columns["key"],
                "etag": columns["etag"],
                "version": batch.extractor_version,
                "document_type": batch.document_type,
                "engine": batch.engine,
                "batch": batch_id,
                "force": force,
            },
        )
    ).one()
    resumed = len(found.resumed)
    if resumed:
        await connection.execute(_PAGES, {"batch": batch_id, "readings": found.resumed})
    unchanged = found.listed - found.new - found.forced - resumed
    # What a batch that is gone on with has finished itself is its work, not something that it found done.
    if unchanged > found.own:
        await connection.execute(_UNCHANGED, {"batch": batch_id, "unchanged": unchanged - found.own})
    return Added(new=found.new, resumed=resumed, unchanged=unchanged, forced=found.forced)
