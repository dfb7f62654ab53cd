"""Batches, documents, readings, pages, attempts, extractions, fields and failures."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE batches (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    source text NOT NULL,
    document_type text NOT NULL,
    engine text NOT NULL,
    extractor_version text NOT NULL,
    parameters jsonb NOT NULL DEFAULT '{}',
    flow_run_id uuid,
    status text NOT NULL DEFAULT 'running',
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    heartbeat_at timestamptz NOT NULL DEFAULT now(),
    summary jsonb NOT NULL DEFAULT '{}',
    counts jsonb,
    documents_unchanged bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    CONSTRAINT status_known CHECK (status IN ('running', 'completed', 'failed', 'cancelled'))
);

CREATE INDEX batches_by_time ON batches (created_at);

CREATE UNIQUE INDEX batches_one_running ON batches (source, extractor_version) WHERE status = 'running';

CREATE TABLE documents (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    bucket text NOT NULL,
    key text NOT NULL,
    etag text NOT NULL,
    version_id text,
    size bigint NOT NULL,
    content_type text,
    last_modified timestamptz NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    sha256 text,
    media_type text,
    page_count integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id),
    CONSTRAINT documents_version UNIQUE (bucket, key, etag)
);

CREATE INDEX documents_by_key ON documents (key);

CREATE INDEX documents_by_sha256 ON documents (sha256);

CREATE TABLE readings (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    position bigint GENERATED ALWAYS AS IDENTITY,
    document_id uuid NOT NULL,
    extractor_version text NOT NULL,
    document_type text NOT NULL,
    engine text NOT NULL,
    batch_id uuid NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    forced boolean NOT NULL DEFAULT false,
    lease_holder text,
    lease_expires_at timestamptz,
    fence bigint NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    page_count integer,
    notes text[] DEFAULT '{}' NOT NULL,
    result jsonb,
    confidence double precision,
    created_at timestamptz NOT NULL DEFAULT now(),
    opened_at timestamptz,
    merged_at timestamptz,
    PRIMARY KEY (id),
    CONSTRAINT status_known CHECK (status IN ('pending', 'opened', 'done', 'partial', 'failed')),
    CONSTRAINT readings_once UNIQUE (document_id, extractor_version),
    FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE,
    FOREIGN KEY(batch_id) REFERENCES batches (id) ON DELETE RESTRICT
);

CREATE INDEX readings_by_batch ON readings (batch_id, status);

CREATE INDEX readings_queue ON readings (batch_id, position) WHERE status = 'pending';

CREATE TABLE pages (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    reading_id uuid NOT NULL,
    document_id uuid NOT NULL,
    batch_id uuid NOT NULL,
    position bigint NOT NULL,
    page_no integer NOT NULL,
    sha256 text NOT NULL,
    extractor_version text NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    lease_holder text,
    lease_expires_at timestamptz,
    fence bigint NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    extraction_id uuid,
    width integer,
    height integer,
    turned integer,
    dpi double precision,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (id),
    CONSTRAINT status_known CHECK (status IN ('pending', 'claimed', 'done', 'failed')),
    CONSTRAINT done_has_an_extraction CHECK (status <> 'done' OR extraction_id IS NOT NULL),
    CONSTRAINT pages_once UNIQUE (reading_id, page_no),
    FOREIGN KEY(reading_id) REFERENCES readings (id) ON DELETE CASCADE,
    FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE,
    FOREIGN KEY(batch_id) REFERENCES batches (id) ON DELETE RESTRICT
);

CREATE INDEX pages_by_batch ON pages (batch_id, status);

CREATE INDEX pages_by_document ON pages (document_id);

CREATE INDEX pages_by_extraction ON pages (extraction_id);

CREATE INDEX pages_queue ON pages (batch_id, position, page_no) WHERE status IN ('pending', 'claimed');

CREATE INDEX pages_read ON pages (sha256, extractor_version, page_no) WHERE status = 'done';

CREATE TABLE attempts (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    page_id uuid NOT NULL,
    batch_id uuid NOT NULL,
    fence bigint NOT NULL,
    number integer NOT NULL,
    holder text NOT NULL,
    engine text NOT NULL,
    model text NOT NULL,
    outcome text NOT NULL,
    code text,
    category text,
    message text,
    disposition text,
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seconds jsonb NOT NULL DEFAULT '{}',
    details jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id),
    CONSTRAINT outcome_known CHECK (outcome IN ('done', 'retried', 'failed')),
    CONSTRAINT code_where_failed CHECK ((outcome = 'done') = (code IS NULL)),
    CONSTRAINT attempts_once UNIQUE (page_id, fence),
    FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE CASCADE,
    FOREIGN KEY(batch_id) REFERENCES batches (id) ON DELETE RESTRICT
);

CREATE INDEX attempts_by_batch ON attempts (batch_id, recorded_at);

CREATE TABLE extractions (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    attempt_id uuid,
    engine text NOT NULL,
    document_type text NOT NULL,
    confidence double precision NOT NULL,
    missing text[] DEFAULT '{}' NOT NULL,
    needs_review boolean NOT NULL,
    result jsonb NOT NULL,
    raw jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id),
    FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE SET NULL
);

CREATE INDEX extractions_by_attempt ON extractions (attempt_id);

CREATE TABLE fields (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    extraction_id uuid NOT NULL,
    position integer NOT NULL,
    page_no integer NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    row integer,
    raw text NOT NULL,
    value_text text,
    value_number numeric,
    value_date date,
    value_boolean boolean,
    currency text,
    confidence double precision NOT NULL,
    x0 real,
    y0 real,
    x1 real,
    y1 real,
    chosen boolean NOT NULL DEFAULT true,
    needs_review boolean NOT NULL DEFAULT false,
    notes text[] DEFAULT '{}' NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT kind_known CHECK (kind IN ('text', 'number', 'money', 'date', 'boolean', 'enum', 'table')),
    CONSTRAINT fields_once UNIQUE (extraction_id, position),
    FOREIGN KEY(extraction_id) REFERENCES extractions (id) ON DELETE CASCADE
);

CREATE INDEX fields_by_name ON fields USING hash (name);

CREATE INDEX fields_to_review ON fields (extraction_id) WHERE needs_review;

CREATE TABLE failures (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    scope text NOT NULL,
    batch_id uuid NOT NULL,
    document_id uuid NOT NULL,
    reading_id uuid NOT NULL,
    page_id uuid,
    page_no integer,
    code text NOT NULL,
    category text NOT NULL,
    message text NOT NULL,
    remedy text NOT NULL,
    disposition text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    resolved_at timestamptz,
    PRIMARY KEY (id),
    CONSTRAINT scope_known CHECK (scope IN ('document', 'page')),
    CONSTRAINT category_known CHECK (category IN ('document', 'page', 'engine', 'objects', 'database', 'configuration', 'internal')),
    CONSTRAINT disposition_known CHECK (disposition IN ('retry', 'resample', 'give_up')),
    CONSTRAINT scope_fits CHECK ((scope = 'page') = (page_id IS NOT NULL)),
    FOREIGN KEY(batch_id) REFERENCES batches (id) ON DELETE RESTRICT,
    FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE,
    FOREIGN KEY(reading_id) REFERENCES readings (id) ON DELETE CASCADE,
    FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE CASCADE
);

CREATE INDEX failures_by_batch ON failures (batch_id, code);

CREATE INDEX failures_by_code ON failures (code) WHERE resolved_at IS NULL;

CREATE INDEX failures_by_document ON failures (document_id);

CREATE INDEX failures_by_reading ON failures (reading_id);

CREATE UNIQUE INDEX failures_open_document ON failures (reading_id) WHERE resolved_at IS NULL AND scope = 'document';

CREATE UNIQUE INDEX failures_open_page ON failures (page_id) WHERE resolved_at IS NULL;

ALTER TABLE pages ADD CONSTRAINT extraction_id_known FOREIGN KEY (extraction_id)
    REFERENCES extractions (id) ON DELETE RESTRICT;

-- Leases and statuses change often: room on each data page keeps those updates beside the row they replace
ALTER TABLE pages SET (fillfactor = 80);

ALTER TABLE readings SET (fillfactor = 80)
"""


def upgrade() -> None:
    for statement in TABLES.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE failures, fields, extractions, attempts, pages, readings, documents, batches")
