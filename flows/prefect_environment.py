"""The environment of the local Prefect server, of its worker and of the flow runs it starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docmill.settings import CONFIG_VARIABLE, config_file

POOL = "docmill"
MARK = "_DOCMILL_STACK"
"""Stands in the environment of all that the local stack starts, with the data folder as its value."""
LOGGERS = "docmill,flows,tasks,serving,storage,console"


def _base(outer: Mapping[str, str], data_dir: Path) -> dict[str, str]:
    """What both need. Prefect's variables of the user's shell stay out: they may point at another server."""
    kept = {name: value for name, value in outer.items() if not name.startswith("PREFECT_")}
    return {
        **kept,
        MARK: str(data_dir),
        "PREFECT_HOME": str(data_dir / "prefect"),
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_CLI_COLORS": "false",
        # Nothing leaves this machine.
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
        # Runs say every 30 s (the least possible) that they live; see prefect_zombies.
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
        "PREFECT_LOGGING_EXTRA_LOGGERS": LOGGERS,
        "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
        "PYTHONUNBUFFERED": "1",
    }


def server_environment(outer: Mapping[str, str], data_dir: Path, port: int, database_url: str) -> dict[str, str]:
    """For the server. The database's password stands here and nowhere else."""
    services = "PREFECT_SERVER_SERVICES"
    return {
        **_base(outer, data_dir),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": database_url.replace("postgresql://", "postgresql+asyncpg://", 1),
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        # One row a transaction loses task runs when many end at once.
        f"{services}_TASK_RUN_RECORDER_BATCH_SIZE": "200",
        f"{services}_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
        f"{services}_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        f"{services}_EVENT_PERSISTER_BATCH_SIZE": "200",
        f"{services}_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
        f"{services}_EVENT_PERSISTER_FLUSH_INTERVAL": "2",
        # Concurrency slots outlive a restart of the server.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    }


def worker_environment(outer: Mapping[str, str], data_dir: Path, url: str) -> dict[str, str]:
    """For the worker and, through it, every flow run. DOCMILL_* variables of the caller go through.

    The worker stands elsewhere than whoever started it, so it is told which docmill.toml is in force.
    """
    path = config_file()
    return {
        **_base(outer, data_dir),
        **({CONFIG_VARIABLE: str(path.resolve())} if path is not None else {}),
        "PREFECT_API_URL": f"{url}/api",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PREFECT_WORKER_ENABLE_CANCELLATION": "true",
    }
