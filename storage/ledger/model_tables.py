"""The tables of model servers: their rows, who holds them, what is in flight, and what was when they crashed."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, PrimaryKeyConstraint, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from docmill.model_servers import ServerState, StopRequest
from storage.ledger.columns import Time, metadata, must, one_of, primary_id, ref

model_servers = Table(
    "model_servers",
    metadata,
    primary_id(),
    must("profile", Text),
    must("base_url", Text, "''"),
    must("state", Text, "'starting'"),
    Column("pid", Integer),
    must("host", Text),
    must("gpus", ARRAY(Integer), "'{}'"),
    must("config_hash", Text, "''"),
    must("restarts", Integer, "0"),
    Column("message", Text),
    must("created_at", Time, "now()"),
    must("heartbeat_at", Time, "now()"),
    Column("ended_at", Time),
    must("served_name", Text, "''"),
    must("model", Text, "''"),
    Column("phase", Text),
    Column("progress", Double),
    Column("pid_started", Double),
    must("tensor_parallel_size", Integer, "1"),
    Column("max_model_len", Integer),
    Column("kv_cache_tokens", Integer),
    Column("vllm_version", Text),
    Column("error_code", Text),
    Column("log_path", Text),
    must("stop_requested", Text, "'none'"),
    must("metrics", JSONB, "'{}'"),
    Column("metrics_at", Time),
    Column("ready_at", Time),
    Column("last_leased_at", Time),
    one_of("state", ServerState),
    one_of("stop_requested", StopRequest),
    Index("model_servers_up", "profile", postgresql_where=text("state NOT IN ('stopped', 'failed')")),
)

model_leases = Table(
    "model_leases",
    metadata,
    primary_id(),
    ref("server_id", "model_servers"),
    must("holder", Text),
    must("created_at", Time, "now()"),
    must("expires_at", Time),
    Index("model_leases_by_server", "server_id", "expires_at"),
    # One holder, one lease: asking again extends it.
    Index("model_leases_once", "server_id", "holder", unique=True),
)

# The page is no foreign key: a note must neither wait for a page's row nor fail because the page is gone.
model_requests = Table(
    "model_requests",
    metadata,
    primary_id(),
    ref("server_id", "model_servers"),
    ref("lease_id", "model_leases"),
    Column("page_id", Uuid),
    must("started_at", Time, "now()"),
    Index("model_requests_by_server", "server_id"),
    Index("model_requests_by_lease", "lease_id"),
)

model_restarts = Table(
    "model_restarts",
    metadata,
    primary_id(),
    ref("server_id", "model_servers"),
    must("happened_at", Time, "now()"),
    must("code", Text),
    must("message", Text),
    Column("exit_code", Integer),
    must("log_tail", Text, "''"),
    must("requests", Integer, "0"),
    Index("model_restarts_by_server", "server_id", "happened_at"),
)

model_restart_pages = Table(
    "model_restart_pages",
    metadata,
    ref("restart_id", "model_restarts"),
    ref("page_id", "pages"),
    PrimaryKeyConstraint("restart_id", "page_id"),
    Index("model_restart_pages_by_page", "page_id"),
)
