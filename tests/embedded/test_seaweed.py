"""An object store of our own: it starts, survives, and keeps to itself."""

import importlib.metadata
import json
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from docmill.failures import ConfigurationError, ObjectStoreUnavailable
from storage.embedded.processes import processes_in, until
from storage.embedded.seaweed import EmbeddedObjectStore
from storage.embedded.state import port_free
from storage.objects.s3 import S3Store

pytestmark = pytest.mark.services
PROJECT = Path(__file__).parents[2]


@pytest.fixture
def server(data_dir):
    made = EmbeddedObjectStore(data_dir, buckets=("forms",))
    yield made
    made.stop()


def ports(server: EmbeddedObjectStore) -> dict[str, int]:
    return json.loads((server.data_dir / "objects.json").read_text())["ports"]


async def test_a_life(server, listening):
    assert not server.running()
    with pytest.raises(ObjectStoreUnavailable, match="never started"):
        server.access()

    access = server.start()
    assert server.start() == access == server.access()
    assert server.running()
    process = server.process()
    everything = {each for port in ports(server).values() for each in (port, port + 10_000)}
    expected = {("127.0.0.1", port) for port in everything}
    # the S3 port answers before the last of the inner ones listens
    until(lambda: len(listening({process.pid})) >= len(expected), 20)
    assert listening({process.pid}) == expected

    store = S3Store(access.url, region=access.region, access_key=access.access_key, secret_key=access.secret_key)
    await store.put("forms", "kept", b"x")
    with socket.socket() as thief:  # the port that clients use is taken while it is down
        server.stop()
        assert not server.running()
        assert not process.alive()
        assert all(map(port_free, everything))
        server.stop()
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", ports(server)["s3"]))
        thief.listen()
        other = server.start()
    await store.close()

    assert other.endpoint != access.endpoint
    store = S3Store(other.url, region=other.region, access_key=other.access_key, secret_key=other.secret_key)
    assert (await store.head("forms", "kept")).size == 1
    await store.close()


def test_it_keeps_to_itself(server):
    access = server.start()
    command = " ".join(psutil.Process(server.process().pid).cmdline())

    assert "-master.telemetry=false" in command
    for process in psutil.process_iter(["cmdline"]):
        assert access.secret_key not in " ".join(process.info["cmdline"] or [])
    assert access.secret_key not in server.log.read_text() + repr(access)
    assert (server.data_dir / "objects.secret").stat().st_mode & 0o777 == 0o600
    assert (server.data_dir / "objects").stat().st_mode & 0o777 == 0o700
    # The inner ports give and take nothing without a signature of their own.
    filer = f"http://127.0.0.1:{ports(server)['filer']}/buckets/forms/new"
    for request in (urllib.request.Request(filer), urllib.request.Request(filer, data=b"x", method="POST")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        with refused.value:
            assert refused.value.code == 401


def test_two_starters_make_one_server(server):
    script = (
        "import sys; from pathlib import Path; from storage.embedded.seaweed import EmbeddedObjectStore\n"
        "made = EmbeddedObjectStore(Path(sys.argv[1])); print(made.start().url, made.process().pid)"
    )
    command = [sys.executable, "-c", script, str(server.data_dir)]
    starters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT) for _ in range(2)]
    answers = {starter.communicate()[0] for starter in starters}

    assert [starter.returncode for starter in starters] == [0, 0]
    assert answers == {f"{server.access().url} {server.process().pid}\n"}
    assert len(processes_in(server.data_dir / "objects", "weed")) == 1


def test_it_is_not_installed(data_dir, monkeypatch):
    def missing(_name: str) -> None:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    monkeypatch.setattr(shutil, "which", lambda _name: None)

    with pytest.raises(ConfigurationError, match="not installed"):
        EmbeddedObjectStore(data_dir).start()


def test_impossible_buckets_are_named(data_dir):
    server = EmbeddedObjectStore(data_dir, buckets=("No_Such/Bucket",))

    with pytest.raises(ConfigurationError, match="No_Such/Bucket"):
        server.start()
    server.stop()
