"""The ledger's read side for people: what the command line and reports show.

Rows are plain dicts with the columns of the views (``v_batches``, ``v_documents``, ``v_fields``, ``v_failures``,
``v_throughput``, which Postgres itself explains: COMMENT ON); pages for reports are :class:`ReadPage`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from sqlalchemy import text

from docmill.extraction import Extraction
from docmill.failures import ConfigurationError, DocumentNotFound, Failure
from docmill.ledger import PageStatus
from docmill.ports import ObjectRef
from storage.ledger.codec import decode_extraction, decode_failure
from storage.ledger.database import Database

Row = dict[str, Any]

_BATCHES = "SELECT * FROM v_batches ORDER BY created_at DESC, batch_id LIMIT :limit"
_LAST_BATCH = "SELECT * FROM v_batches WHERE documents_total > 0 ORDER BY created_at DESC, batch_id LIMIT 1"
_BATCH_RANGE = "SELECT * FROM v_batches WHERE batch_id BETWEEN :low AND :high ORDER BY created_at DESC LIMIT 6"

_BATCH_OF_RUN = "SELECT id FROM batches WHERE flow_run_id = :run ORDER BY created_at DESC LIMIT 1"

_FAILED_OBJECTS = """
SELECT DISTINCT d.bucket, d.key, d.etag, d.size, d.last_modified, d.version_id, d.content_type
FROM failures f JOIN documents d ON d.id = f.document_id
WHERE f.batch_id = :batch AND f.resolved_at IS NULL
    AND (cardinality(CAST(:codes AS text[])) = 0 OR f.code = ANY(CAST(:codes AS text[])))
    AND (CAST(:key AS text) IS NULL OR d.key = :key)
ORDER BY d.bucket, d.key LIMIT CAST(:limit AS bigint)
"""

_DOCUMENTS = "SELECT * FROM v_documents WHERE batch_id = :batch ORDER BY bucket, key, last_modified"

_DOCUMENTS_UNDER = """
SELECT * FROM v_documents
WHERE bucket = :bucket AND starts_with(key, :prefix)
    AND (CAST(:type AS text) IS NULL OR document_type = :type)
    AND CASE WHEN CAST(:version AS text) IS NULL THEN is_current ELSE extractor_version = :version END
ORDER BY key, last_modified
"""

_PAGE_SECONDS = """
SELECT DISTINCT ON (page_no) page_no, seconds FROM v_attempts
WHERE reading_id = :reading AND outcome = 'done' ORDER BY page_no, recorded_at DESC
"""

# One row per object version and document type would do; the current and latest come first.
_NEWEST_FIRST = "ORDER BY is_current DESC, merged_at DESC NULLS LAST, opened_at DESC NULLS LAST, last_modified DESC"
_BY_KEY = f"SELECT * FROM v_documents WHERE key = :key {_NEWEST_FIRST}"
_BY_NAME = f"SELECT * FROM v_documents WHERE right(key, length(:name) + 1) = '/' || :name {_NEWEST_FIRST} LIMIT 100"
_BY_ID = f"""
SELECT * FROM v_documents
WHERE document_id BETWEEN :low AND :high OR reading_id BETWEEN :low AND :high {_NEWEST_FIRST} LIMIT 100
"""

_FIELDS = """
SELECT f.id AS field_id, p.id AS page_id, f.page_no, f.position, f.name, f.kind, f.row, f.value_text, f.value_number,
    f.value_date, f.value_boolean, f.currency, f.raw, f.confidence, f.chosen, f.needs_review,
    f.notes, f.x0, f.y0, f.x1, f.y1
FROM pages p JOIN fields f ON f.extraction_id = p.extraction_id
WHERE p.reading_id = :reading AND (CAST(:page AS integer) IS NULL OR p.page_no = :page)
ORDER BY f.page_no, f.position
"""

_RESULT = "SELECT result FROM readings WHERE id = :reading"

_FAILURES = """
SELECT * FROM v_failures
WHERE (CAST(:batch AS uuid) IS NULL OR batch_id = :batch) AND (CAST(:code AS text) IS NULL OR code = :code)
    AND (CAST(:reading AS uuid) IS NULL OR reading_id = :reading)
ORDER BY created_at DESC, failure_id LIMIT CAST(:limit AS bigint)
"""

_PAGES = """
SELECT p.id AS page_id, p.page_no, p.status, p.width, p.height, p.turned, p.dpi, p.attempts, e.result, e.raw,
    f.code, f.category, f.message, f.remedy, f.disposition, f.detail
FROM pages p
LEFT JOIN extractions e ON e.id = p.extraction_id
LEFT JOIN failures f ON f.page_id = p.id AND f.resolved_at IS NULL
WHERE p.reading_id = :reading AND (CAST(:page AS integer) IS NULL OR p.page_no = :page)
ORDER BY p.page_no
"""

_THROUGHPUT = """
SELECT * FROM v_throughput WHERE CAST(:batch AS uuid) IS NULL OR batch_id = :batch
ORDER BY last_recorded_at DESC LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page with what was read on it, for reports and overlays.

    Attributes:
        width, height: pixels of the picture as a viewer shows it; None where it was not drawn.
        turned: degrees clockwise by which it was turned to be read; boxes are of the page before turning.
        attempts: how many were spent.
        extraction: None where it has not been read, or failed.
        failure: the open one.
    """

    page_id: UUID
    page_no: int
    status: PageStatus
    width: int | None
    height: int | None
    turned: int
    dpi: float | None
    attempts: int
    extraction: Extraction | None
    failure: Failure | None


class LedgerQueries:
    """Reads the ledger. Every method raises as :class:`storage.ledger.postgres.PostgresLedger` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, *, pool_size: int = 2, prepared_statements: bool = True) -> AsyncIterator[Self]:
        """Queries over a pool of connections, closed at the end; ``url`` as for the ledger."""
        async with Database(url, pool_size=pool_size, prepared_statements=prepared_statements) as database:
            yield cls(database)

    async def _rows(self, query: str, **parameters: Any) -> list[Row]:
        async def read(connection: Any) -> list[Row]:
            return [dict(row) for row in (await connection.execute(text(query), parameters)).mappings()]

        return await self._database.run(read)

    async def batches(self, limit: int = 20) -> list[Row]:
        """The latest batches, newest first: rows of ``v_batches``."""
        return await self._rows(_BATCHES, limit=limit)

    async def batch(self, name: str) -> Row:
        """One batch: by id, by the beginning of its id, or ``last``: the latest that found anything new.

        Raises:
            ConfigurationError: there is none, or the beginning fits several.
        """
        if name == "last":
            found = await self._rows(_LAST_BATCH) or await self._rows(_BATCHES, limit=1)
            if not found:
                raise ConfigurationError("there is no batch yet", remedy="begin with: docmill ingest SOURCE")
            return found[0]
        span = _span(name)
        found = await self._rows(_BATCH_RANGE, low=span[0], high=span[1]) if span else []
        if not found:
            raise ConfigurationError(f"there is no batch {name!r}", remedy="see: docmill batches")
        if len(found) > 1:
            ids = ", ".join(str(row["batch_id"])[: len(name) + 6] for row in found[:5])
            raise ConfigurationError(f"{name!r} fits several batches", remedy=f"give more of its id: {ids}")
        return found[0]

    async def batch_parameters(self, batch_id: UUID) -> dict[str, Any]:
        """The parameters that a batch was started with; empty where there is no such batch."""
        rows = await self._rows("SELECT parameters FROM batches WHERE id = :batch", batch=batch_id)
        found: dict[str, Any] = rows[0]["parameters"] if rows else {}
        return found

    async def batch_of_run(self, flow_run_id: UUID) -> UUID | None:
        """The batch that a Prefect flow run works on or went on with last; None while it has none."""
        rows = await self._rows(_BATCH_OF_RUN, run=flow_run_id)
        found: UUID | None = rows[0]["id"] if rows else None
        return found

    async def failed_objects(
        self, batch_id: UUID, *, codes: Sequence[str] = (), key: str | None = None, limit: int | None = None
    ) -> list[ObjectRef]:
        """The objects with open failures of a batch, to be read anew under another extractor_version."""
        rows = await self._rows(_FAILED_OBJECTS, batch=batch_id, codes=list(codes), key=key, limit=limit)
        return [ObjectRef(**row) for row in rows]

    async def documents(self, batch_id: UUID) -> list[Row]:
        """The documents of a batch in order of key: rows of ``v_documents``."""
        return await self._rows(_DOCUMENTS, batch=batch_id)

    async def documents_under(
        self, bucket: str, prefix: str, *, document_type: str | None = None, extractor_version: str | None = None
    ) -> list[Row]:
        """The current documents whose keys begin so, in order of key: rows of ``v_documents``.

        Args:
            bucket: of a source.
            prefix: of it.
            document_type: only readings as this type.
            extractor_version: only readings under this version, also those that are not the current ones.
        """
        return await self._rows(
            _DOCUMENTS_UNDER, bucket=bucket, prefix=prefix, type=document_type, version=extractor_version
        )

    async def page_seconds(self, reading_id: UUID) -> dict[int, float]:
        """Page number → seconds of the attempt that read it."""
        rows = await self._rows(_PAGE_SECONDS, reading=reading_id)
        return {row["page_no"]: row["seconds"] for row in rows}

    async def document(self, name: str, *, document_type: str | None = None) -> Row:
        """One document as it was read last: by key, file name, id (document or reading) or the beginning of an id.

        Args:
            name: tried in this order.
            document_type: only readings as this type.

        Raises:
            DocumentNotFound: there is none.
            ConfigurationError: the name fits several objects.
        """
        found = await self._rows(_BY_KEY, key=name) or await self._rows(_BY_NAME, name=name)
        if not found and (span := _span(name)):
            found = await self._rows(_BY_ID, low=span[0], high=span[1])
        if document_type is not None:
            found = [row for row in found if row["document_type"] == document_type]
        if not found:
            as_type = f" read as {document_type}" if document_type else ""
            raise DocumentNotFound(
                f"there is no document {name!r}{as_type}", remedy="list them with: docmill show --batch last"
            )
        objects = sorted({(row["bucket"], row["key"]) for row in found})
        if len(objects) > 1:
            ids = ", ".join(
                f"{next(str(r['document_id'])[:13] for r in found if (r['bucket'], r['key']) == each)} ({each[1]})"
                for each in objects[:5]
            )
            raise ConfigurationError(f"{name!r} fits several documents", remedy=f"give the id of one: {ids}")
        return found[0]

    async def fields(self, reading_id: UUID, page_no: int | None = None) -> list[Row]:
        """The values of one reading (of one page of it) in order of page and place: columns as in ``v_fields``."""
        return await self._rows(_FIELDS, reading=reading_id, page=page_no)

    async def result(self, reading_id: UUID) -> dict[str, Any] | None:
        """The merged result of a reading; None before it is merged."""
        rows = await self._rows(_RESULT, reading=reading_id)
        result: dict[str, Any] | None = rows[0]["result"] if rows else None
        return result

    async def failures(
        self,
        batch_id: UUID | None = None,
        *,
        code: str | None = None,
        reading_id: UUID | None = None,
        limit: int | None = 1000,
    ) -> list[Row]:
        """Open failures, newest first: rows of ``v_failures``."""
        return await self._rows(_FAILURES, batch=batch_id, code=code, reading=reading_id, limit=limit)

    async def pages(self, reading_id: UUID, page_no: int | None = None) -> list[ReadPage]:
        """The pages of one reading with their extractions and failures, in order."""
        return [_page(row) for row in await self._rows(_PAGES, reading=reading_id, page=page_no)]

    async def throughput(self, batch_id: UUID | None = None, limit: int = 20) -> list[Row]:
        """Pages per second by batch and engine, newest first: rows of ``v_throughput``."""
        return await self._rows(_THROUGHPUT, batch=batch_id, limit=limit)


def _span(prefix: str) -> tuple[UUID, UUID] | None:
    """The lowest and highest id that begin so, for an index to use; None where no id does."""
    digits = prefix.lower().replace("-", "")
    if not re.fullmatch(r"[0-9a-f]{1,32}", digits):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def _page(row: Row) -> ReadPage:
    return ReadPage(
        page_id=row["page_id"],
        page_no=row["page_no"],
        status=PageStatus(row["status"]),
        width=row["width"],
        height=row["height"],
        turned=row["turned"] or 0,
        dpi=row["dpi"],
        attempts=row["attempts"],
        extraction=None if row["result"] is None else decode_extraction(row["result"], row["raw"]),
        failure=None if row["code"] is None else decode_failure(row),
    )
