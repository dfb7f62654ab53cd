"""A page or a document that is given up: its status and its failure row, together."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.failures import Failure
from storage.ledger import schema
from storage.ledger.codec import failure_columns

_PAGE_FAILED = text("""
UPDATE pages
SET status = 'failed', lease_holder = NULL, lease_expires_at = NULL, extraction_id = NULL,
    finished_at = clock_timestamp()
WHERE id = :id
RETURNING batch_id, document_id, reading_id, id AS page_id, page_no
""")

_DOCUMENT_FAILED = text("""
UPDATE readings
SET status = 'failed', lease_holder = NULL, lease_expires_at = NULL, page_count = NULL
WHERE id = :id
RETURNING batch_id, document_id, id AS reading_id
""")

_PAGE_RESOLVED = text("UPDATE failures SET resolved_at = clock_timestamp() WHERE page_id = :id AND resolved_at IS NULL")

_DOCUMENT_RESOLVED = text("""
UPDATE failures SET resolved_at = clock_timestamp()
WHERE reading_id = :id AND scope = 'document' AND resolved_at IS NULL
""")


async def resolve_page(connection: AsyncConnection, page_id: UUID) -> None:
    """Close the page's open failure: its outcome is known again."""
    await connection.execute(_PAGE_RESOLVED, {"id": page_id})


async def resolve_document(connection: AsyncConnection, reading_id: UUID) -> None:
    """Close the failure of a document that could not be opened."""
    await connection.execute(_DOCUMENT_RESOLVED, {"id": reading_id})


async def fail_page(connection: AsyncConnection, page_id: UUID, failure: Failure) -> None:
    """Give the page up. An open failure of it from before makes room for this one."""
    place = (await connection.execute(_PAGE_FAILED, {"id": page_id})).one()._mapping
    await resolve_page(connection, page_id)
    await _write(connection, "page", dict(place), failure)


async def fail_document(connection: AsyncConnection, reading_id: UUID, failure: Failure) -> None:
    """Give up a document that cannot be opened."""
    place = (await connection.execute(_DOCUMENT_FAILED, {"id": reading_id})).one()._mapping
    await resolve_document(connection, reading_id)
    await _write(connection, "document", dict(place), failure)


async def _write(connection: AsyncConnection, scope: str, place: dict[str, Any], failure: Failure) -> None:
    await connection.execute(insert(schema.failures).values(scope=scope, **place, **failure_columns(failure)))
