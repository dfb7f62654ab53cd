"""The tables, as SQLAlchemy knows them. The migrations make them; a test keeps the two alike.

Times are timestamptz, ids uuid, enumerations text with a CHECK. A box is four fractions of the page: x0 y0 x1 y1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from docmill.extraction import FieldKind
from docmill.failures import Category, Disposition
from docmill.ledger import BatchStatus, PageStatus, ReadingStatus

metadata = MetaData()

Time = DateTime(timezone=True)
ATTEMPT_OUTCOMES = ("done", "retried", "failed")
FAILURE_SCOPES = ("document", "page")
REVIEW_DECISIONS = ("confirmed", "corrected", "rejected")
SERVER_STATES = ("starting", "ready", "sleeping", "draining", "stopped", "failed")


def _id() -> Column[Any]:
    return Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()"))


def _ref(name: str, target: str, *, on_delete: str = "CASCADE", nullable: bool = False, late: bool = False) -> Any:
    key = ForeignKey(f"{target}.id", ondelete=on_delete, use_alter=late, name=f"{name}_known" if late else None)
    return Column(name, Uuid, key, nullable=nullable)


def _must(name: str, kind: Any, default: str | None = None) -> Column[Any]:
    return Column(name, kind, nullable=False, server_default=None if default is None else text(default))


def _one_of(column: str, values: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def _lease() -> list[Column[Any]]:
    return [
        Column("lease_holder", Text),
        Column("lease_expires_at", Time),
        _must("fence", BigInteger, "0"),
        _must("crashes", Integer, "0"),
    ]


batches = Table(
    "batches",
    metadata,
    _id(),
    _must("source", Text),
    _must("document_type", Text),
    _must("engine", Text),
    _must("extractor_version", Text),
    _must("parameters", JSONB, "'{}'"),
    Column("flow_run_id", Uuid),
    _must("status", Text, "'running'"),
    _must("created_at", Time, "now()"),
    Column("finished_at", Time),
    _must("heartbeat_at", Time, "now()"),
    _must("summary", JSONB, "'{}'"),
    Column("counts", JSONB),
    _must("documents_unchanged", BigInteger, "0"),
    _one_of("status", BatchStatus),
    Index("batches_by_time", "created_at"),
    Index(
        "batches_one_running", "source", "extractor_version", unique=True, postgresql_where=text("status = 'running'")
    ),
)

documents = Table(
    "documents",
    metadata,
    _id(),
    _must("bucket", Text),
    _must("key", Text),
    _must("etag", Text),
    Column("version_id", Text),
    _must("size", BigInteger),
    Column("content_type", Text),
    _must("last_modified", Time),
    _must("metadata", JSONB, "'{}'"),
    Column("sha256", Text),
    Column("media_type", Text),
    Column("page_count", Integer),
    _must("created_at", Time, "now()"),
    UniqueConstraint("bucket", "key", "etag", name="documents_version"),
    Index("documents_by_key", "key"),
    Index("documents_by_sha256", "sha256"),
)

readings = Table(
    "readings",
    metadata,
    _id(),
    Column("position", BigInteger, Identity(always=True), nullable=False),
    _ref("document_id", "documents"),
    _must("extractor_version", Text),
    _must("document_type", Text),
    _must("engine", Text),
    _ref("batch_id", "batches", on_delete="RESTRICT"),
    _must("status", Text, "'pending'"),
    _must("forced", Boolean, "false"),
    *_lease(),
    Column("page_count", Integer),
    _must("notes", ARRAY(Text), "'{}'"),
    Column("result", JSONB),
    Column("confidence", Double),
    _must("created_at", Time, "now()"),
    Column("opened_at", Time),
    Column("merged_at", Time),
    _one_of("status", ReadingStatus),
    UniqueConstraint("document_id", "extractor_version", name="readings_once"),
    Index("readings_by_batch", "batch_id", "status"),
    Index("readings_queue", "batch_id", "position", postgresql_where=text("status = 'pending'")),
)

pages = Table(
    "pages",
    metadata,
    _id(),
    _ref("reading_id", "readings"),
    _ref("document_id", "documents"),
    _ref("batch_id", "batches", on_delete="RESTRICT"),
    _must("position", BigInteger),
    _must("page_no", Integer),
    _must("sha256", Text),
    _must("extractor_version", Text),
    _must("status", Text, "'pending'"),
    *_lease(),
    _must("attempts", Integer, "0"),
    _ref("extraction_id", "extractions", on_delete="RESTRICT", nullable=True, late=True),
    Column("width", Integer),
    Column("height", Integer),
    Column("turned", Integer),
    Column("dpi", Double),
    _must("created_at", Time, "now()"),
    Column("finished_at", Time),
    _one_of("status", PageStatus),
    CheckConstraint("status <> 'done' OR extraction_id IS NOT NULL", name="done_has_an_extraction"),
    UniqueConstraint("reading_id", "page_no", name="pages_once"),
    Index("pages_by_batch", "batch_id", "status"),
    Index("pages_queue", "batch_id", "position", "page_no", postgresql_where=text("status IN ('pending', 'claimed')")),
    Index("pages_read", "sha256", "extractor_version", "page_no", postgresql_where=text("status = 'done'")),
    Index("pages_by_document", "document_id"),
    Index("pages_by_extraction", "extraction_id"),
)

attempts = Table(
    "attempts",
    metadata,
    _id(),
    _ref("page_id", "pages"),
    _ref("batch_id", "batches", on_delete="RESTRICT"),
    _must("fence", BigInteger),
    _must("number", Integer),
    _must("holder", Text),
    _must("engine", Text),
    _must("model", Text),
    _must("outcome", Text),
    Column("code", Text),
    Column("category", Text),
    Column("message", Text),
    Column("disposition", Text),
    _must("started_at", Time),
    _must("ended_at", Time),
    _must("recorded_at", Time, "clock_timestamp()"),
    _must("seconds", JSONB, "'{}'"),
    _must("details", JSONB, "'{}'"),
    _one_of("outcome", ATTEMPT_OUTCOMES),
    CheckConstraint("(outcome = 'done') = (code IS NULL)", name="code_where_failed"),
    # One claim, one record: the database itself refuses a second.
    UniqueConstraint("page_id", "fence", name="attempts_once"),
    Index("attempts_by_batch", "batch_id", "recorded_at"),
)

extractions = Table(
    "extractions",
    metadata,
    _id(),
    _ref("attempt_id", "attempts", on_delete="SET NULL", nullable=True),
    _must("engine", Text),
    _must("document_type", Text),
    _must("confidence", Double),
    _must("missing", ARRAY(Text), "'{}'"),
    _must("needs_review", Boolean),
    _must("result", JSONB),
    _must("raw", JSONB, "'{}'"),
    _must("created_at", Time, "now()"),
    Index("extractions_by_attempt", "attempt_id"),
)

fields = Table(
    "fields",
    metadata,
    _id(),
    _ref("extraction_id", "extractions"),
    _must("position", Integer),
    _must("page_no", Integer),
    _must("name", Text),
    _must("kind", Text),
    Column("row", Integer),
    _must("raw", Text),
    Column("value_text", Text),
    Column("value_number", Numeric),
    Column("value_date", Date),
    Column("value_boolean", Boolean),
    Column("currency", Text),
    _must("confidence", Double),
    Column("x0", REAL),
    Column("y0", REAL),
    Column("x1", REAL),
    Column("y1", REAL),
    _must("chosen", Boolean, "true"),
    _must("needs_review", Boolean, "false"),
    _must("notes", ARRAY(Text), "'{}'"),
    _one_of("kind", FieldKind),
    UniqueConstraint("extraction_id", "position", name="fields_once"),
    Index("fields_by_name", "name", postgresql_using="hash"),  # a printed label may be too long for a B-tree
    Index("fields_to_review", "extraction_id", postgresql_where=text("needs_review")),
)

failures = Table(
    "failures",
    metadata,
    _id(),
    _must("scope", Text),
    _ref("batch_id", "batches", on_delete="RESTRICT"),
    _ref("document_id", "documents"),
    _ref("reading_id", "readings"),
    _ref("page_id", "pages", nullable=True),
    Column("page_no", Integer),
    _must("code", Text),
    _must("category", Text),
    _must("message", Text),
    _must("remedy", Text),
    _must("disposition", Text),
    _must("detail", JSONB, "'{}'"),
    _must("created_at", Time, "clock_timestamp()"),
    Column("resolved_at", Time),
    _one_of("scope", FAILURE_SCOPES),
    _one_of("category", Category),
    _one_of("disposition", Disposition),
    CheckConstraint("(scope = 'page') = (page_id IS NOT NULL)", name="scope_fits"),
    Index("failures_by_batch", "batch_id", "code"),
    Index("failures_by_code", "code", postgresql_where=text("resolved_at IS NULL")),
    Index("failures_by_document", "document_id"),
    Index("failures_by_reading", "reading_id"),
    Index("failures_open_page", "page_id", unique=True, postgresql_where=text("resolved_at IS NULL")),
    Index(
        "failures_open_document",
        "reading_id",
        unique=True,
        postgresql_where=text("resolved_at IS NULL AND scope = 'document'"),
    ),
)

reviews = Table(
    "reviews",
    metadata,
    _id(),
    _ref("page_id", "pages"),
    _ref("field_id", "fields", on_delete="SET NULL", nullable=True),
    _must("field_name", Text),
    Column("field_row", Integer),
    _must("decision", Text),
    Column("value_text", Text),
    Column("comment", Text),
    _must("reviewer", Text),
    _must("created_at", Time, "now()"),
    _one_of("decision", REVIEW_DECISIONS),
    Index("reviews_by_page", "page_id"),
    Index("reviews_by_field", "field_id"),
)

model_servers = Table(
    "model_servers",
    metadata,
    _id(),
    _must("profile", Text),
    _must("base_url", Text),
    _must("state", Text, "'starting'"),
    Column("pid", Integer),
    _must("host", Text),
    _must("gpus", ARRAY(Integer), "'{}'"),
    _must("config_hash", Text),
    _must("restarts", Integer, "0"),
    Column("message", Text),
    _must("created_at", Time, "now()"),
    _must("heartbeat_at", Time, "now()"),
    Column("ended_at", Time),
    _one_of("state", SERVER_STATES),
    Index("model_servers_up", "profile", postgresql_where=text("state NOT IN ('stopped', 'failed')")),
)

model_leases = Table(
    "model_leases",
    metadata,
    _id(),
    _ref("server_id", "model_servers"),
    _must("holder", Text),
    _must("created_at", Time, "now()"),
    _must("expires_at", Time),
    Index("model_leases_by_server", "server_id", "expires_at"),
)
