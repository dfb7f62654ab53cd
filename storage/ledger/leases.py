"""Leases: extended, given back, and checked by their fence before anything is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.ledger import DocumentClaim, PageClaim

Claims = Sequence[DocumentClaim | PageClaim]

_RENEW_PAGES = text("""
WITH held AS (
    SELECT p.id FROM pages p
    JOIN unnest(CAST(:ids AS uuid[]), CAST(:fences AS bigint[]), CAST(:holders AS text[])) AS c (id, fence, holder)
        ON c.id = p.id AND c.fence = p.fence AND c.holder = p.lease_holder
    WHERE p.status = 'claimed'
    ORDER BY p.id FOR NO KEY UPDATE OF p
)
UPDATE pages SET lease_expires_at = now() + make_interval(secs => :seconds)
FROM held WHERE pages.id = held.id RETURNING pages.id
""")

_RENEW_READINGS = text("""
WITH held AS (
    SELECT r.id FROM readings r
    JOIN unnest(CAST(:ids AS uuid[]), CAST(:fences AS bigint[]), CAST(:holders AS text[])) AS c (id, fence, holder)
        ON c.id = r.id AND c.fence = r.fence AND c.holder = r.lease_holder
    WHERE r.status = 'pending'
    ORDER BY r.id FOR NO KEY UPDATE OF r
)
UPDATE readings SET lease_expires_at = now() + make_interval(secs => :seconds)
FROM held WHERE readings.id = held.id RETURNING readings.id
""")

_RELEASE_PAGES = text("""
UPDATE pages p SET status = 'pending', lease_holder = NULL, lease_expires_at = NULL
FROM unnest(CAST(:ids AS uuid[]), CAST(:fences AS bigint[]), CAST(:holders AS text[])) AS c (id, fence, holder)
WHERE c.id = p.id AND c.fence = p.fence AND c.holder = p.lease_holder AND p.status = 'claimed'
""")

_RELEASE_READINGS = text("""
UPDATE readings r SET lease_holder = NULL, lease_expires_at = NULL
FROM unnest(CAST(:ids AS uuid[]), CAST(:fences AS bigint[]), CAST(:holders AS text[])) AS c (id, fence, holder)
WHERE c.id = r.id AND c.fence = r.fence AND c.holder = r.lease_holder AND r.status = 'pending'
""")

_HOLD_READING = text("""
SELECT id, status, fence, lease_holder, forced, batch_id FROM readings WHERE id = :id FOR NO KEY UPDATE
""")

_HOLD_PAGE = text("""
SELECT id, batch_id FROM pages
WHERE id = :id AND fence = :fence AND lease_holder = :holder AND status = 'claimed'
FOR NO KEY UPDATE
""")


async def hold_reading(connection: AsyncConnection, reading_id: UUID) -> Row[Any] | None:
    """Lock the reading's row until the transaction ends; None where it is gone."""
    return (await connection.execute(_HOLD_READING, {"id": reading_id})).one_or_none()


async def hold_page(connection: AsyncConnection, claim: PageClaim) -> Row[Any] | None:
    """Lock the page's row, or None where this claim is no longer the newest."""
    found = {"id": claim.page_id, "fence": claim.fence, "holder": claim.holder}
    return (await connection.execute(_HOLD_PAGE, found)).one_or_none()


def _arrays(claims: Claims) -> tuple[dict[str, Any], dict[str, Any]]:
    """(pages, readings), each as parallel arrays."""
    pages: dict[str, list[Any]] = {"ids": [], "fences": [], "holders": []}
    readings: dict[str, list[Any]] = {"ids": [], "fences": [], "holders": []}
    for claim in claims:
        into = pages if isinstance(claim, PageClaim) else readings
        into["ids"].append(claim.page_id if isinstance(claim, PageClaim) else claim.reading_id)
        into["fences"].append(claim.fence)
        into["holders"].append(claim.holder)
    return pages, readings


async def renew(connection: AsyncConnection, claims: Claims, lease_seconds: float) -> set[UUID]:
    """Extend the leases from now on; returns the ids of those that are lost.

    One that ran out and that nobody took over meanwhile is extended too.
    """
    pages, readings = _arrays(claims)
    lost = {*pages["ids"], *readings["ids"]}
    for statement, arrays in ((_RENEW_READINGS, readings), (_RENEW_PAGES, pages)):
        if arrays["ids"]:
            kept = await connection.execute(statement, {**arrays, "seconds": float(lease_seconds)})
            lost.difference_update(kept.scalars())
    return lost


async def release(connection: AsyncConnection, claims: Claims) -> None:
    """Give the claims back; those that are lost stay with their new holders."""
    pages, readings = _arrays(claims)
    for statement, arrays in ((_RELEASE_READINGS, readings), (_RELEASE_PAGES, pages)):
        if arrays["ids"]:
            await connection.execute(statement, arrays)
