"""Model servers: what their supervisors tell, requests in flight, restarts, and pages that crash servers."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

UP = """
ALTER TABLE model_servers
    ADD served_name text NOT NULL DEFAULT '',
    ADD model text NOT NULL DEFAULT '',
    ADD phase text,
    ADD progress double precision,
    ADD pid_started double precision,
    ADD tensor_parallel_size integer NOT NULL DEFAULT 1,
    ADD max_model_len integer,
    ADD kv_cache_tokens integer,
    ADD vllm_version text,
    ADD error_code text,
    ADD log_path text,
    ADD stop_requested text NOT NULL DEFAULT 'none',
    ADD metrics jsonb NOT NULL DEFAULT '{}',
    ADD metrics_at timestamptz,
    ADD ready_at timestamptz,
    ADD last_leased_at timestamptz,
    ALTER base_url SET DEFAULT '',
    ALTER config_hash SET DEFAULT '',
    ADD CONSTRAINT stop_requested_known CHECK (stop_requested IN ('none', 'drain', 'force'));

CREATE UNIQUE INDEX model_leases_once ON model_leases (server_id, holder);

CREATE TABLE model_requests (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    server_id uuid NOT NULL,
    lease_id uuid NOT NULL,
    page_id uuid,
    started_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id),
    FOREIGN KEY(server_id) REFERENCES model_servers (id) ON DELETE CASCADE,
    FOREIGN KEY(lease_id) REFERENCES model_leases (id) ON DELETE CASCADE
);

CREATE INDEX model_requests_by_server ON model_requests (server_id);

CREATE INDEX model_requests_by_lease ON model_requests (lease_id);

CREATE TABLE model_restarts (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    server_id uuid NOT NULL,
    happened_at timestamptz NOT NULL DEFAULT now(),
    code text NOT NULL,
    message text NOT NULL,
    exit_code integer,
    log_tail text NOT NULL DEFAULT '',
    requests integer NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    FOREIGN KEY(server_id) REFERENCES model_servers (id) ON DELETE CASCADE
);

CREATE INDEX model_restarts_by_server ON model_restarts (server_id, happened_at);

CREATE TABLE model_restart_pages (
    restart_id uuid NOT NULL,
    page_id uuid NOT NULL,
    PRIMARY KEY (restart_id, page_id),
    FOREIGN KEY(restart_id) REFERENCES model_restarts (id) ON DELETE CASCADE,
    FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE CASCADE
);

CREATE INDEX model_restart_pages_by_page ON model_restart_pages (page_id);

ALTER TABLE pages ADD server_crashes integer NOT NULL DEFAULT 0;

CREATE INDEX pages_suspected ON pages (batch_id) WHERE server_crashes >= 2 AND status IN ('pending', 'claimed');

-- Heartbeats change these rows all the time: room beside them for what replaces them
ALTER TABLE model_servers SET (fillfactor = 50)
"""

DOWN = """
DROP INDEX pages_suspected;

ALTER TABLE pages DROP server_crashes;

DROP TABLE model_restart_pages, model_restarts, model_requests;

DROP INDEX model_leases_once;

ALTER TABLE model_servers
    ALTER config_hash DROP DEFAULT,
    ALTER base_url DROP DEFAULT,
    DROP served_name,
    DROP model,
    DROP phase,
    DROP progress,
    DROP pid_started,
    DROP tensor_parallel_size,
    DROP max_model_len,
    DROP kv_cache_tokens,
    DROP vllm_version,
    DROP error_code,
    DROP log_path,
    DROP stop_requested,
    DROP metrics,
    DROP metrics_at,
    DROP ready_at,
    DROP last_leased_at,
    RESET (fillfactor)
"""


def _metric(name: str, kind: str) -> str:
    # What is no number is left out: one odd row must not break the view.
    value = f"CASE WHEN jsonb_typeof(s.metrics -> '{name}') = 'number' THEN (s.metrics ->> '{name}')::numeric END"
    return f"({value})::{kind} AS {name}"


METRICS = {
    "requests_running": "bigint",
    "requests_waiting": "bigint",
    "kv_cache_usage": "double precision",
    "prompt_tokens_per_second": "double precision",
    "generation_tokens_per_second": "double precision",
    "prompt_tokens_total": "bigint",
    "generation_tokens_total": "bigint",
    "requests_succeeded_total": "bigint",
    "preemptions_total": "bigint",
    "admission_rejections_total": "bigint",
}

SERVERS = f"""
CREATE VIEW v_model_servers AS
SELECT s.id AS server_id, s.profile, s.served_name, s.model, s.state,
    s.state NOT IN ('stopped', 'failed') AND s.heartbeat_at > now() - interval '60 seconds' AS is_alive,
    s.phase, s.progress, s.base_url, s.host, s.gpus, s.tensor_parallel_size, s.max_model_len, s.kv_cache_tokens,
    s.vllm_version, s.pid, s.restarts, l.leases, s.stop_requested, s.error_code, s.message, s.log_path, s.created_at,
    s.ready_at,
    CASE WHEN s.state IN ('ready', 'sleeping', 'draining')
        THEN extract(epoch FROM now() - s.ready_at)::double precision END AS uptime_seconds,
    s.last_leased_at, s.heartbeat_at, s.ended_at, s.metrics_at,
    {", ".join(_metric(name, kind) for name, kind in METRICS.items())}
FROM model_servers s
CROSS JOIN LATERAL (
    SELECT count(*) AS leases FROM model_leases WHERE model_leases.server_id = s.id AND expires_at > now()
) l
"""

LEASES = """
CREATE VIEW v_model_leases AS
SELECT l.id AS lease_id, l.server_id, s.profile, s.host, l.holder, l.created_at, l.expires_at,
    l.expires_at > now() AS is_live, r.requests_in_flight
FROM model_leases l
JOIN model_servers s ON s.id = l.server_id
CROSS JOIN LATERAL (
    SELECT count(*) AS requests_in_flight FROM model_requests WHERE model_requests.lease_id = l.id
) r
"""

RESTARTS = """
CREATE VIEW v_model_restarts AS
SELECT r.id AS restart_id, r.server_id, s.profile, s.host, r.happened_at, r.code, r.message, r.exit_code, r.requests,
    r.log_tail, p.id AS page_id, p.reading_id, p.document_id, d.bucket, d.key, p.page_no
FROM model_restarts r
JOIN model_servers s ON s.id = r.server_id
LEFT JOIN (
    model_restart_pages rp JOIN pages p ON p.id = rp.page_id JOIN documents d ON d.id = p.document_id
) ON rp.restart_id = r.id
"""

VIEWS = {
    "v_model_servers": (SERVERS, "One row per model server, running or ended, with its last metrics."),
    "v_model_leases": (LEASES, "Who holds which model server: a server with live leases is not stopped."),
    "v_model_restarts": (
        RESTARTS,
        "Crashes and hangs of model servers: one row per page that was in flight, or one without a page.",
    ),
}

COLUMNS = {
    "admission_rejections_total": "Requests that vLLM turned away since its start, because its queue was full.",
    "base_url": "Where it answers, without /v1; empty until it has a port.",
    "bucket": "Bucket, or folder, that the object lies in.",
    "code": "Error code: what kind of crash or hang it was.",
    "created_at": "When the row was made.",
    "document_id": "One version of one object.",
    "ended_at": "When it was stopped or given up; null while it is live.",
    "error_code": "Error code of its last crash, or of its end; null where nothing went wrong.",
    "exit_code": "Exit status of the process, negative for a signal; null for a hang.",
    "expires_at": "When the lease ends unless it is renewed, by the database's clock.",
    "generation_tokens_per_second": "Tokens written per second, between the last two scrapes.",
    "generation_tokens_total": "Tokens written since its start.",
    "gpus": "Indexes of the GPUs that it holds on its host.",
    "happened_at": "When its supervisor recorded it.",
    "heartbeat_at": "When its supervisor last gave a sign of life.",
    "holder": "The flow or command that holds it.",
    "host": "The machine that it runs on.",
    "is_alive": "Neither ended nor without a sign of life from its supervisor for 60 seconds.",
    "is_live": "Not expired.",
    "key": "The object's path in its bucket.",
    "kv_cache_tokens": "Tokens that its KV cache holds, as vLLM logged.",
    "kv_cache_usage": "Share of the KV cache in use, 0 to 1.",
    "last_leased_at": "When a lease on it last ended; null where none has.",
    "lease_id": "One hold on one server.",
    "leases": "Live leases.",
    "log_path": "Its log file, on its host.",
    "log_tail": "The last lines of its log.",
    "max_model_len": "Context in tokens.",
    "message": "What happened.",
    "metrics_at": "When its metrics were read.",
    "model": "The model's folder or hub id.",
    "page_id": "One page of one reading.",
    "page_no": "1 for the first page.",
    "phase": "What a starting server is doing: preflight, loading, compiling, capturing, warming.",
    "pid": "The process that leads its group, on its host.",
    "preemptions_total": "Requests that were pushed out of the KV cache and begun again, since its start.",
    "profile": "Name of the profile, or the model's folder.",
    "progress": "0 to 1 within the phase; null where unknown.",
    "prompt_tokens_per_second": "Tokens read per second, between the last two scrapes.",
    "prompt_tokens_total": "Tokens read since its start.",
    "reading_id": "The document under one extractor_version.",
    "ready_at": "When it last became ready.",
    "requests": "Requests that were in flight, with or without a page.",
    "requests_in_flight": "Requests that its holder waits for.",
    "requests_running": "Requests that vLLM works on.",
    "requests_succeeded_total": "Requests answered since its start.",
    "requests_waiting": "Requests in vLLM's queue.",
    "restart_id": "One crash or hang.",
    "restarts": "How often it was restarted.",
    "served_name": "What requests put into model.",
    "server_id": "One model server.",
    "state": "starting, ready, sleeping, draining, stopped or failed.",
    "stop_requested": "none, drain (once no lease is live) or force.",
    "tensor_parallel_size": "GPUs that one copy of the model is spread over.",
    "uptime_seconds": "Seconds since it became ready; null while it starts and after its end.",
    "vllm_version": "Version of vLLM.",
}


def upgrade() -> None:
    for statement in UP.split(";\n"):
        op.execute(statement)
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
    for statement in DOWN.split(";\n"):
        op.execute(statement)
