"""Prefect's server and a worker on this machine, in the background, backed by Postgres, calling nobody.

Files in the data folder: ``prefect.json`` (port, processes), ``prefect.lock``, ``logs/prefect-server.log``,
``logs/prefect-worker.log`` and ``prefect/``, which is Prefect's home. Nothing of the user's own Prefect profile is read
or changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx

from docmill.failures import ConfigurationError, ServerNotReady
from flows.prefect_environment import MARK, POOL, server_environment, worker_environment
from flows.prefect_zombies import ensure_zombie_automation
from storage.embedded.databases import ensure_database
from storage.embedded.processes import RecordedProcess, end, log_tail, processes_marked, session_members, spawn, until
from storage.embedded.state import free_port, locked, port_free, read_state, write_state

DATABASE = "prefect"
START_SECONDS = 120.0
"""The first start makes Prefect's tables; on a slow disk that takes a while."""
WORKER_SECONDS = 60.0
STOP_SECONDS = 6.0
PORT_TRIES = 3


@dataclass(frozen=True, slots=True)
class PrefectProcesses:
    """The processes that run now; None is one that does not."""

    server: RecordedProcess | None
    worker: RecordedProcess | None


class LocalPrefect:
    """A Prefect server with one process worker.

    Args:
        data_dir: docmill's data folder.
        database_url: ``postgresql://…`` of any database of the server to use; Prefect gets one of its own there. Needed
            to start, not to stop.
        pool: name of the work pool.
    """

    def __init__(self, data_dir: Path, database_url: str | None = None, *, pool: str = POOL) -> None:
        self.data_dir = data_dir.expanduser().resolve()
        self.pool = pool
        self.server_log = self.data_dir / "logs" / "prefect-server.log"
        self.worker_log = self.data_dir / "logs" / "prefect-worker.log"
        self._database_url = database_url
        self._state_path = self.data_dir / "prefect.json"
        self._home = self.data_dir / "prefect"

    # --- life -----------------------------------------------------------------------------------------------------

    def start(self) -> str:
        """Start server and worker unless they run already; the API's URL.

        Raises:
            ConfigurationError: no database was given.
            ServerNotReady: one of them did not start in time; the message names its log.
        """
        with locked(self.data_dir / "prefect.lock"):
            self._home.mkdir(parents=True, exist_ok=True)
            if not self.running():
                self._start_server()
            if self.processes().worker is None:
                self._start_worker()
            ensure_zombie_automation(self.api_url)
            return self.api_url

    def stop(self) -> None:
        """End worker, flow runs and server, in this order, so that runs can still report how they ended."""
        with locked(self.data_dir / "prefect.lock"):
            found = self.processes()
            state = read_state(self._state_path)
            mine = processes_marked(MARK, str(self.data_dir))
            server = [found.server] if found.server is not None else []
            # All at once: the worker is asked to take no more runs, the runs themselves to end and say so.
            end([each for each in mine if each not in server], grace_seconds=STOP_SECONDS)
            end(server, grace_seconds=STOP_SECONDS)
            rest = processes_marked(MARK, str(self.data_dir))
            for part in ("worker", "server"):
                recorded = _recorded(state.get(part))
                if recorded is not None:
                    rest += session_members(recorded)
            end(rest, grace_seconds=1.0)
            write_state(self._state_path, {key: state[key] for key in ("port",) if key in state})

    def running(self) -> bool:
        """Whether our server answers."""
        return self.processes().server is not None and self._healthy()

    # --- what is there --------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The UI's URL.

        Raises:
            ServerNotReady: it was never started.
        """
        port = read_state(self._state_path).get("port")
        if port is None:
            raise ServerNotReady("the local Prefect server was never started", remedy="docmill up")
        return f"http://127.0.0.1:{port}"

    @property
    def api_url(self) -> str:
        """The API's URL."""
        return f"{self.url}/api"

    def processes(self) -> PrefectProcesses:
        """The server's and the worker's process."""
        state = read_state(self._state_path)
        alive = {part: _recorded(state.get(part)) for part in ("server", "worker")}
        return PrefectProcesses(
            **{part: each if each is not None and each.alive() else None for part, each in alive.items()}
        )

    # --- starting -------------------------------------------------------------------------------------------------

    def _start_server(self) -> None:
        if self._database_url is None:
            raise ConfigurationError("the local Prefect server needs a Postgres", remedy="docmill up")
        database = ensure_database(self._database_url, DATABASE)
        self._end_part("server")
        for _ in range(PORT_TRIES):
            port = read_state(self._state_path).get("port")
            if not isinstance(port, int) or not port_free(port):
                port = free_port()
                self._remember(port=port)
            command = ("-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port))
            environment = server_environment(os.environ, self.data_dir, port, database)
            child = self._spawn("server", command, self.server_log, environment)
            if self._wait_for_server(child):
                return
        raise self._not_ready("server", self.server_log)

    def _wait_for_server(self, child: subprocess.Popen[bytes]) -> bool:
        """Whether it is up; False where it ended because its port was snatched."""
        deadline = time.monotonic() + START_SECONDS
        while not until(lambda: self._healthy() or child.poll() is not None, 1.0):
            if time.monotonic() > deadline:
                raise self._not_ready("server", self.server_log)
        if child.returncode is None:
            return True
        if port_free(int(read_state(self._state_path)["port"])):
            raise self._not_ready("server", self.server_log)
        return False

    def _start_worker(self) -> None:
        self._end_part("worker")
        # A worker whose pool is missing makes it.
        command = ("-m", "prefect", "--no-prompt", "worker", "start", "--pool", self.pool, "--type", "process")
        environment = worker_environment(os.environ, self.data_dir, self.url)
        child = self._spawn("worker", (*command, "--name", "local"), self.worker_log, environment)
        if not until(lambda: self._worker_online() or child.poll() is not None, WORKER_SECONDS) or child.returncode:
            raise self._not_ready("worker", self.worker_log)

    def _spawn(
        self, part: str, arguments: tuple[str, ...], log: Path, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        # In Prefect's home: a prefect.toml, pyproject.toml or .env where the user stands would be read as settings.
        child = spawn([sys.executable, *arguments], log=log, environment=environment, directory=self._home)
        process = RecordedProcess.of(child.pid)
        if process is not None:
            self._remember(**{part: {"pid": process.pid, "started": process.started}})
        return child

    def _remember(self, **facts: object) -> None:
        write_state(self._state_path, {**read_state(self._state_path), **facts})

    def _end_part(self, part: str) -> None:
        recorded = _recorded(read_state(self._state_path).get(part))
        if recorded is not None:
            end(session_members(recorded), grace_seconds=STOP_SECONDS)

    def _healthy(self) -> bool:
        try:
            return httpx.get(f"{self.api_url}/health", timeout=5.0, trust_env=False).status_code == 200
        except (httpx.HTTPError, ServerNotReady):
            return False

    def _worker_online(self) -> bool:
        try:
            answer = httpx.post(
                f"{self.api_url}/work_pools/{self.pool}/workers/filter", json={}, timeout=5.0, trust_env=False
            )
        except httpx.HTTPError:
            return False
        started = self.processes().worker
        return (
            answer.status_code == 200
            and started is not None
            and any(each.get("status") == "ONLINE" and _heard_since(each, started.started) for each in answer.json())
        )

    def _not_ready(self, part: str, log: Path) -> ServerNotReady:
        return ServerNotReady(
            f"the local Prefect {part} did not start", remedy=f"see {log}", detail={"log": log_tail(log)}
        )


def _recorded(state: object) -> RecordedProcess | None:
    if isinstance(state, dict) and isinstance(state.get("pid"), int):
        return RecordedProcess(state["pid"], float(state.get("started", 0.0)))
    return None


def _heard_since(worker: dict[str, object], started: float) -> bool:
    """Whether a worker's heartbeat is of this start of it: the record of an earlier one may still say ONLINE."""
    heard = worker.get("last_heartbeat_time")
    return isinstance(heard, str) and datetime.fromisoformat(heard).timestamp() >= started
