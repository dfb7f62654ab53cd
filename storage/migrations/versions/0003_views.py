"""The views that people query: stable names, every column explained, no JSON needed."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# A reading is superseded once a newer version of its object, or the same one read again later, has been read for the
# same document type.
READINGS = """
CREATE VIEW v_readings AS
SELECT r.id AS reading_id, d.id AS document_id, r.batch_id, d.bucket, d.key, d.etag, d.version_id,
    r.document_type, r.engine, r.extractor_version, r.status, r.merged_at,
    NOT EXISTS (
        SELECT FROM documents newer
        JOIN readings other ON other.document_id = newer.id
        WHERE newer.key = d.key AND newer.bucket = d.bucket AND other.document_type = r.document_type
            AND other.status IN ('done', 'partial') AND other.merged_at IS NOT NULL
            AND (newer.last_modified, other.merged_at) > (d.last_modified, coalesce(r.merged_at, '-infinity'))
    ) AS is_current
FROM readings r JOIN documents d ON d.id = r.document_id
"""

# Fields are counted page by page: as one join, Postgres reads all of them for every document until it has statistics.
DOCUMENTS = """
CREATE VIEW v_documents AS
SELECT v.document_id, v.reading_id, v.batch_id, v.bucket, v.key, v.etag, v.version_id, d.size AS size_bytes,
    d.media_type, d.sha256, d.last_modified, v.document_type, v.engine, v.extractor_version, v.status, r.confidence,
    coalesce(r.page_count, d.page_count) AS page_count, p.pages_done, p.pages_failed, f.fields, f.fields_to_review,
    o.open_failures, d.created_at AS first_seen_at, r.opened_at, r.merged_at, v.is_current
FROM v_readings v
JOIN readings r ON r.id = v.reading_id
JOIN documents d ON d.id = v.document_id
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE status = 'done') AS pages_done,
        count(*) FILTER (WHERE status = 'failed') AS pages_failed
    FROM pages WHERE pages.reading_id = v.reading_id
) p
CROSS JOIN LATERAL (
    SELECT coalesce(sum(n), 0)::bigint AS fields, coalesce(sum(doubtful), 0)::bigint AS fields_to_review
    FROM pages CROSS JOIN LATERAL (
        SELECT count(*) AS n, count(*) FILTER (WHERE fields.needs_review) AS doubtful
        FROM fields WHERE fields.extraction_id = pages.extraction_id
    ) page
    WHERE pages.reading_id = v.reading_id
) f
CROSS JOIN LATERAL (
    SELECT count(*) AS open_failures FROM failures
    WHERE failures.reading_id = v.reading_id AND failures.resolved_at IS NULL
) o
"""

FIELDS = """
CREATE VIEW v_fields AS
SELECT f.id AS field_id, v.document_id, v.reading_id, p.id AS page_id, p.batch_id, v.bucket, v.key, v.document_type,
    v.engine, f.page_no, f.position, f.name, f.kind, f.row, f.value_text, f.value_number, f.value_date,
    f.value_boolean, f.currency, f.raw, f.confidence, f.chosen, f.needs_review, f.notes, f.x0, f.y0, f.x1, f.y1,
    CASE WHEN f.x0 IS NOT NULL THEN ARRAY[f.x0, f.y0, f.x1, f.y1] END AS box, p.finished_at AS read_at
FROM fields f
JOIN pages p ON p.extraction_id = f.extraction_id
JOIN v_readings v ON v.reading_id = p.reading_id
WHERE v.is_current
"""

FAILURES = """
CREATE VIEW v_failures AS
SELECT f.id AS failure_id, f.batch_id, f.document_id, f.reading_id, f.page_id, f.scope, d.bucket, d.key, f.page_no,
    r.document_type, r.engine, f.code, f.category, f.message, f.remedy, f.disposition, f.created_at
FROM failures f
JOIN documents d ON d.id = f.document_id
JOIN readings r ON r.id = f.reading_id
WHERE f.resolved_at IS NULL
"""

_READING_COUNTS = ("total", "done", "partial", "failed", "unopened")
_PAGE_COUNTS = ("total", "done", "failed")


def _kept(name: str, live: str) -> str:
    return f"coalesce((b.counts ->> '{name}')::bigint, {live}) AS {name}"


# A closed batch keeps the counts it closed with, also when another batch takes its failures up again.
BATCHES = f"""
CREATE VIEW v_batches AS
SELECT b.id AS batch_id, b.source, b.document_type, b.engine, b.extractor_version, b.flow_run_id, b.status,
    b.created_at, b.finished_at, b.heartbeat_at,
    extract(epoch FROM coalesce(b.finished_at, now()) - b.created_at)::double precision AS seconds,
    {", ".join(_kept(f"documents_{name}", f"r.{name}") for name in _READING_COUNTS)},
    b.documents_unchanged,
    {", ".join(_kept(f"pages_{name}", f"p.{name}") for name in _PAGE_COUNTS)},
    {_kept("fields", "f.fields")}, {_kept("fields_to_review", "f.to_review")},
    (SELECT count(*) FROM failures o WHERE o.batch_id = b.id AND o.resolved_at IS NULL) AS open_failures
FROM batches b
CROSS JOIN LATERAL (
    SELECT count(*) AS total, count(*) FILTER (WHERE status = 'done') AS done,
        count(*) FILTER (WHERE status = 'partial') AS partial, count(*) FILTER (WHERE status = 'failed') AS failed,
        count(*) FILTER (WHERE status = 'failed' AND page_count IS NULL) AS unopened
    FROM readings WHERE readings.batch_id = b.id AND b.counts IS NULL
) r
CROSS JOIN LATERAL (
    SELECT count(*) AS total, count(*) FILTER (WHERE status = 'done') AS done,
        count(*) FILTER (WHERE status = 'failed') AS failed
    FROM pages WHERE pages.batch_id = b.id AND b.counts IS NULL
) p
CROSS JOIN LATERAL (
    SELECT count(*) AS fields, count(*) FILTER (WHERE fields.needs_review) AS to_review
    FROM pages JOIN fields ON fields.extraction_id = pages.extraction_id
    WHERE pages.batch_id = b.id AND pages.status = 'done' AND b.counts IS NULL
) f
"""

ATTEMPTS = """
CREATE VIEW v_attempts AS
SELECT a.id AS attempt_id, a.batch_id, p.document_id, p.reading_id, a.page_id, d.bucket, d.key, r.document_type,
    p.page_no, a.number, a.engine, a.model, a.holder, a.outcome, a.code, a.category, a.message, a.disposition,
    a.started_at, a.ended_at, a.recorded_at,
    coalesce((a.seconds ->> 'total')::double precision,
        extract(epoch FROM a.ended_at - a.started_at)::double precision) AS seconds,
    (a.seconds ->> 'render')::double precision AS render_seconds,
    (a.seconds ->> 'ocr')::double precision AS ocr_seconds,
    (a.seconds ->> 'infer')::double precision AS infer_seconds
FROM attempts a
JOIN pages p ON p.id = a.page_id
JOIN readings r ON r.id = p.reading_id
JOIN documents d ON d.id = p.document_id
"""

THROUGHPUT = """
CREATE VIEW v_throughput AS
SELECT a.batch_id, b.source, b.document_type, a.engine, a.pages, a.pages_failed, a.attempts, a.first_started_at,
    a.last_recorded_at, a.seconds, a.pages / nullif(a.seconds, 0) AS pages_per_second, a.seconds_per_attempt
FROM (
    SELECT batch_id, engine, count(*) FILTER (WHERE outcome <> 'retried') AS pages,
        count(*) FILTER (WHERE outcome = 'failed') AS pages_failed, count(*) AS attempts,
        min(started_at) AS first_started_at, max(recorded_at) AS last_recorded_at,
        extract(epoch FROM max(recorded_at) - min(started_at))::double precision AS seconds,
        avg(extract(epoch FROM ended_at - started_at))::double precision AS seconds_per_attempt
    FROM attempts GROUP BY batch_id, engine
) a
JOIN batches b ON b.id = a.batch_id
"""

VIEWS = {
    "v_readings": (READINGS, "Every document under every extractor_version it was read with, and which is current."),
    "v_documents": (DOCUMENTS, "One row per document and reading: where it stands, and what was found in it."),
    "v_fields": (FIELDS, "The values found on pages: those of the current extraction of the current reading only."),
    "v_failures": (FAILURES, "What is broken now and what to do about it: failures that nothing has resolved since."),
    "v_batches": (BATCHES, "One row per batch: live counts while it runs, afterwards those it closed with."),
    "v_attempts": (ATTEMPTS, "Every try at every page, with its outcome and how long each step took."),
    "v_throughput": (THROUGHPUT, "Pages per second of each batch and engine, from first start to last record."),
}

COLUMNS = {
    "attempt_id": "One try at one page.",
    "attempts": "Tries, also those that were tried again.",
    "batch_id": "The batch whose work it is, or was last.",
    "box": "x0, y0, x1, y1 as an array; null where no ink supports the value.",
    "bucket": "Bucket, or folder, that the object lies in.",
    "category": "Whose trouble: document, page, engine, objects, database, configuration, internal.",
    "chosen": "False where another page of the document gives a better supported value of the same name.",
    "code": "Error code; null for a success.",
    "confidence": "0 to 1.",
    "created_at": "When the row was made.",
    "currency": "ISO 4217, for money where it is known.",
    "disposition": "retry, resample or give_up.",
    "document_id": "One version of one object.",
    "document_type": "What it was read as.",
    "documents_done": "Documents with every page read.",
    "documents_failed": "Documents that could not be opened or of which every page failed.",
    "documents_partial": "Documents with some failed pages.",
    "documents_total": "Documents that were this batch's work.",
    "documents_unchanged": "Documents that were listed but had been read before.",
    "documents_unopened": "Documents among the failed that could not be opened.",
    "ended_at": "When the try ended, by the worker's clock.",
    "engine": "ocr or vision.",
    "etag": "The object store's mark of this version's bytes.",
    "extractor_version": "Hash of document type, prompt, schema, engine and model.",
    "failure_id": "One failure.",
    "field_id": "One value.",
    "fields": "Values found.",
    "fields_to_review": "Values that a person should look at.",
    "finished_at": "When the batch was closed; null while it runs.",
    "first_seen_at": "When a listing first showed it.",
    "first_started_at": "When the first page was started.",
    "flow_run_id": "Prefect's flow run that went on with it last.",
    "heartbeat_at": "When a worker last claimed something of it.",
    "holder": "The worker.",
    "infer_seconds": "Seconds in the engine.",
    "is_current": "Neither a newer version of the object nor a later reading as the same type has been read.",
    "key": "The object's path in its bucket.",
    "kind": "text, number, money, date, boolean, enum or table: decides the typed column.",
    "last_modified": "When the object was written, by the store.",
    "last_recorded_at": "When the last page was recorded.",
    "media_type": "By content, not by name; null until it was opened.",
    "merged_at": "When the last page was in and the result was put together.",
    "message": "What happened.",
    "model": "The model that read it.",
    "name": "The document type's name of the field; for generic the printed label; table.column in a table.",
    "needs_review": "Low confidence, a failed validator, or not normalised: see notes.",
    "notes": "Why, as short codes.",
    "number": "1 for the first try.",
    "ocr_seconds": "Seconds of OCR.",
    "open_failures": "Failures that nothing has resolved.",
    "opened_at": "When its pages were counted.",
    "outcome": "done, retried (failed and tried again) or failed.",
    "page_count": "Pages; null until it was opened.",
    "page_id": "One page of one reading.",
    "page_no": "1 for the first page.",
    "pages": "Pages that were read or given up.",
    "pages_done": "Pages read.",
    "pages_failed": "Pages given up.",
    "pages_per_second": "Finished pages by seconds; pauses between interrupted runs count as time.",
    "pages_total": "Pages that were this batch's work.",
    "position": "Order on the page.",
    "raw": "What was read, as it stands on the page.",
    "read_at": "When the page was recorded.",
    "reading_id": "The document under one extractor_version.",
    "recorded_at": "When it was recorded, by the database's clock.",
    "remedy": "What to do about it.",
    "render_seconds": "Seconds of drawing the page.",
    "row": "For a column of a table, the 0-based row; else null.",
    "scope": "document (could not be opened) or page.",
    "seconds": "How long it took.",
    "seconds_per_attempt": "Mean length of a try, by the worker's clock.",
    "sha256": "Hash of the bytes, in hex.",
    "size_bytes": "Size of the object.",
    "source": "What was ingested, as the user wrote it.",
    "started_at": "When the try began, by the worker's clock.",
    "status": "Where it stands: see docmill.ledger.",
    "value_boolean": "The value of a check box or boolean field.",
    "value_date": "The value of a date field.",
    "value_number": "The value of a number or money field.",
    "value_text": "The value as text, whatever its kind; null where it could not be normalised (see raw).",
    "version_id": "The object store's version, where the bucket keeps versions.",
    "x0": "Left edge, as a fraction of the page's width.",
    "x1": "Right edge, as a fraction of the page's width.",
    "y0": "Top edge, as a fraction of the page's height.",
    "y1": "Bottom edge, as a fraction of the page's height.",
}


def upgrade() -> None:
    connection = op.get_bind()
    for name, (definition, comment) in VIEWS.items():
        op.execute(definition)
        op.execute(f"COMMENT ON VIEW {name} IS '{comment}'")
        columns = connection.exec_driver_sql(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0", (name,)
        ).scalars()
        for column in list(columns):
            text = COLUMNS[column].replace("'", "''")
            connection.exec_driver_sql(f"COMMENT ON COLUMN {name}.\"{column}\" IS '{text}'")


def downgrade() -> None:
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {name}")
