"""What only S3 has, on the real server: credentials, versions, links that expire, a server that is killed."""

import asyncio
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from docmill.failures import AccessDenied, ConfigurationError
from storage.embedded.processes import until
from storage.embedded.seaweed import EmbeddedObjectStore
from storage.objects.s3 import S3Store
from storage.objects.s3_credentials import CredentialsChain

pytestmark = pytest.mark.services
VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "MINIO_ACCESS_KEY")


@pytest.mark.parametrize(("key", "secret"), [(None, "wrong-secret"), ("nobody", "wrong-secret")])
async def test_wrong_credentials_are_refused(object_store_access, s3, tmp_path, key, secret):
    ref = await s3.store.put(s3.bucket, "key", b"x")
    store = S3Store(
        object_store_access.url,
        region=object_store_access.region,
        access_key=key or object_store_access.access_key,
        secret_key=secret,
    )
    for request in (
        store.check(),
        store.head(s3.bucket, "key"),
        store.fetch(ref, tmp_path / "target"),
        store.put(s3.bucket, "other", b"x"),
        anext(store.list(s3.bucket)),
    ):
        with pytest.raises(AccessDenied) as caught:
            await request
        assert secret not in repr(caught.value.detail) + str(caught.value)
    await store.close()


async def test_credentials_come_from_the_chain(object_store_access, s3, monkeypatch):
    await s3.store.put(s3.bucket, "key", b"x")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", object_store_access.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", object_store_access.secret_key)

    store = S3Store(object_store_access.endpoint, secure=False, region=object_store_access.region)
    head = await store.head(s3.bucket, "key")
    await store.close()

    assert head.size == 1


def test_no_credentials_anywhere(monkeypatch, tmp_path):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    # The machine's role is asked for at an address that answers nobody.
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/role")

    with pytest.raises(AccessDenied, match="no credentials"):
        CredentialsChain().retrieve()


async def test_versions(s3, tmp_path):
    await s3.store.put(s3.bucket, "first", b"x")
    _versioned(s3)
    one = await s3.store.put(s3.bucket, "key", b"one")
    two = await s3.store.put(s3.bucket, "key", b"twotwo")

    await s3.store.fetch(one, tmp_path / "one")
    await s3.store.fetch(two, tmp_path / "two")
    head = await s3.store.head(s3.bucket, "key")

    assert one.version_id and two.version_id and one.version_id != two.version_id
    assert head.version_id == two.version_id
    assert (tmp_path / "one").read_bytes() == b"one"
    assert (tmp_path / "two").read_bytes() == b"twotwo"


def _versioned(s3) -> None:
    from minio.commonconfig import ENABLED
    from minio.versioningconfig import VersioningConfig

    s3.store._client.set_bucket_versioning(s3.bucket, VersioningConfig(ENABLED))


async def test_a_link_expires(s3):
    await s3.store.put(s3.bucket, "key", b"x")
    link = await s3.store.presigned_get(s3.bucket, "key", expires_seconds=1)

    def refused() -> bool:
        try:
            urllib.request.urlopen(link).close()
        except urllib.error.HTTPError as error:
            with error:
                return error.code == 403
        return False

    assert await asyncio.to_thread(until, refused, 30.0)


async def test_a_killed_server_comes_back_with_everything(service_folder, tmp_path):
    server = EmbeddedObjectStore(service_folder / "killed", buckets=("forms",))
    access = server.start()
    store = S3Store(access.url, region=access.region, access_key=access.access_key, secret_key=access.secret_key)
    done: list[int] = []
    enough = asyncio.Event()

    async def put(n: int) -> None:
        ref = await store.put("forms", f"{n:04}", bytes([n % 256]) * 5000, metadata={"n": str(n)})
        assert ref.size == 5000
        done.append(n)
        if len(done) == 150:
            enough.set()

    await asyncio.gather(*map(put, range(100)))
    running = asyncio.create_task(_put_until_killed(put))
    await enough.wait()
    os.kill(server.process().pid, signal.SIGKILL)
    await running
    await asyncio.to_thread(server.start)

    found = {ref.key: ref async for ref in store.list("forms")}
    for n in done:
        await store.fetch(found[f"{n:04}"], tmp_path / "target")
        assert (tmp_path / "target").read_bytes() == bytes([n % 256]) * 5000
        assert (await store.head("forms", f"{n:04}")).metadata == {"n": str(n)}
    await store.close()
    await asyncio.to_thread(server.stop)


async def _put_until_killed(put) -> None:
    from docmill.failures import ObjectStoreUnavailable

    for n in range(100, 100_000):
        try:
            await put(n)
        except ObjectStoreUnavailable:
            return


@pytest.mark.parametrize(
    ("endpoint", "named"),
    [
        ("ftp://host", "URL"),
        ("http://", "URL"),
        ("http://host:port", "URL"),
        ("https://user:pass@host:9000", "more than a host"),
        ("https://host:9000/bucket", "more than a host"),
    ],
)
def test_endpoints_that_cannot_be(endpoint, named):
    with pytest.raises(ConfigurationError, match=named) as caught:
        S3Store(endpoint, access_key="a", secret_key="b")
    assert "pass@" not in str(caught.value)


def test_half_of_the_credentials():
    with pytest.raises(ConfigurationError, match="secret_key"):
        S3Store("http://host", access_key="a")


def test_a_missing_certificate_file(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="ca_file"):
        S3Store("https://host", access_key="a", secret_key="b", ca_file=tmp_path / "none.pem")


@pytest.mark.parametrize(("virtual", "start"), [(True, "http://forms.s3.example:9000/k"), (False, "http://s3.example")])
async def test_addressing(virtual, start):
    store = S3Store("http://s3.example:9000", region="us-east-1", access_key="a", secret_key="b", virtual_host=virtual)
    link = await store.presigned_get("forms", "k")
    await store.close()

    assert link.startswith(start)


@pytest.mark.parametrize("bucket", ["ab", "Upper_Case/x", "a..b", "192.168.0.1"])
async def test_impossible_buckets(s3, bucket):
    with pytest.raises(ConfigurationError, match="no such name"):
        await s3.store.put(bucket, "key", b"x")
