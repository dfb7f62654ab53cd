"""Reviews by people; model servers and who holds them."""

from alembic import op

revision = "0002"
down_revision = '0001'
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE reviews (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    page_id uuid NOT NULL,
    field_id uuid,
    field_name text NOT NULL,
    field_row integer,
    decision text NOT NULL,
    value_text text,
    comment text,
    reviewer text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id),
    CONSTRAINT decision_known CHECK (decision IN ('confirmed', 'corrected', 'rejected')),
    FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE CASCADE,
    FOREIGN KEY(field_id) REFERENCES fields (id) ON DELETE SET NULL
);

CREATE INDEX reviews_by_field ON reviews (field_id);

CREATE INDEX reviews_by_page ON reviews (page_id);

CREATE TABLE model_servers (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    profile text NOT NULL,
    base_url text NOT NULL,
    state text NOT NULL DEFAULT 'starting',
    pid integer,
    host text NOT NULL,
    gpus integer[] DEFAULT '{}' NOT NULL,
    config_hash text NOT NULL,
    restarts integer NOT NULL DEFAULT 0,
    message text,
    created_at timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    PRIMARY KEY (id),
    CONSTRAINT state_known CHECK (state IN ('starting', 'ready', 'sleeping', 'draining', 'stopped', 'failed'))
);

CREATE INDEX model_servers_up ON model_servers (profile) WHERE state NOT IN ('stopped', 'failed');

CREATE TABLE model_leases (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    server_id uuid NOT NULL,
    holder text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(server_id) REFERENCES model_servers (id) ON DELETE CASCADE
);

CREATE INDEX model_leases_by_server ON model_leases (server_id, expires_at)
"""


def upgrade() -> None:
    for statement in TABLES.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE model_leases, model_servers, reviews")
