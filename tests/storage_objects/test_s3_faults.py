"""What an S3 client meets when the network or the server is bad. No retry waits here, so that tests do not."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from docmill.failures import (
    AccessDenied,
    ConfigurationError,
    DocmillError,
    DocumentNotFound,
    ObjectStoreUnavailable,
    failure_of,
)
from docmill.ports import ObjectRef
from storage.objects.s3 import S3Store

BUCKET = "bucket"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
REF = ObjectRef(BUCKET, "key", "e", 4, EPOCH)


@dataclass
class Answer:
    """One answer.

    A ``length`` other than the body's promises more and then ends the connection; ``silent`` says nothing at all until
    the server ends.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    silent: bool = False


def s3_error(status: int, code: str, **headers: str) -> Answer:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message></Error>".encode()
    return Answer(status, body, {"Content-Type": "application/xml", **headers})


def listing(*keys: str, truncated: bool = False) -> Answer:
    contents = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        f'<ETag>"{key}"</ETag><Size>{0 if key.endswith("/") else 3}</Size></Contents>'
        for key in keys
    )
    body = (
        "<?xml version='1.0'?><ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
        f"<Name>b</Name><IsTruncated>{str(truncated).lower()}</IsTruncated>{contents}"
        f"<NextContinuationToken>t</NextContinuationToken></ListBucketResult>"
    )
    return Answer(200, body.encode(), {"Content-Type": "application/xml"})


def object_answer(data: bytes, etag: str = "e") -> Answer:
    return Answer(200, data, {"ETag": f'"{etag}"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"})


def store_at(endpoint: str, *, tries: int = 3, read_timeout: float = 5.0, waits: list | None = None) -> S3Store:
    asked = waits if waits is not None else []

    def wait(tries: int, retry_after: float | None) -> float:
        asked.append((tries, retry_after))
        return 0.0

    return S3Store(
        endpoint,
        region="us-east-1",
        access_key="key",
        secret_key="secret-key",
        tries=tries,
        connect_timeout_seconds=1.0,
        read_timeout_seconds=read_timeout,
        wait_seconds=wait,
    )


@pytest.mark.parametrize(
    "trouble",
    [
        s3_error(500, "InternalError"),
        s3_error(503, "SlowDown"),
        s3_error(429, "TooManyRequests"),
        s3_error(400, "RequestTimeout"),
        Answer(502, b"<html>bad gateway</html>", {"Content-Type": "text/html"}),
        Answer(503),
        Answer(200, b"<ListBucket", {"Content-Type": "application/xml"}, length=100),
        Answer(200, b"<ListBucketResult><Na", {"Content-Type": "application/xml"}),
    ],
    ids=["500", "slow-down", "429", "request-timeout", "gateway", "bare-503", "cut-off", "broken-xml"],
)
async def test_passing_troubles_are_tried_again(faulty_server, trouble):
    with faulty_server(trouble, trouble, listing("a")) as server:
        store = store_at(server.endpoint)
        found = [ref.key async for ref in store.list(BUCKET)]
        await store.close()

    assert found == ["a"]
    assert len(server.requests) == 3


async def test_tries_come_to_an_end_and_are_not_multiplied(faulty_server):
    waits: list = []
    with faulty_server(s3_error(503, "SlowDown", **{"Retry-After": "7"})) as server:
        store = store_at(server.endpoint, tries=4, waits=waits)
        with pytest.raises(ObjectStoreUnavailable) as caught:
            await store.head(BUCKET, "key")
        await store.close()

    assert len(server.requests) == 4
    assert [tries for tries, _ in waits] == [1, 2, 3]
    assert caught.value.detail["status"] == 503


async def test_retry_after_is_handed_on(faulty_server):
    waits: list = []
    slow = s3_error(503, "SlowDown", **{"Retry-After": "7"})
    with faulty_server(slow, listing("a")) as server:
        store = store_at(server.endpoint, waits=waits)
        assert [ref.key async for ref in store.list(BUCKET)] == ["a"]
        await store.close()

    assert waits == [(1, 7.0)]


async def test_a_silent_server_is_left_after_the_time_out(faulty_server, tmp_path):
    with faulty_server(Answer(silent=True), object_answer(b"data")) as server:
        store = store_at(server.endpoint, read_timeout=0.2)
        await store.fetch(REF, tmp_path / "target")
        await store.close()

    assert (tmp_path / "target").read_bytes() == b"data"
    assert len(server.requests) == 2


async def test_a_body_that_breaks_off_is_fetched_again(faulty_server, tmp_path):
    cut = Answer(200, b"da", {"ETag": '"e"'}, length=4)
    with faulty_server(cut, object_answer(b"data")) as server:
        store = store_at(server.endpoint)
        await store.fetch(REF, tmp_path / "target")
        await store.close()

    assert (tmp_path / "target").read_bytes() == b"data"
    assert [each.name for each in tmp_path.iterdir()] == ["target"]


async def test_a_server_that_ignores_if_match_is_seen_through(faulty_server, tmp_path):
    with faulty_server(object_answer(b"data", etag="another")) as server:
        store = store_at(server.endpoint)
        with pytest.raises(DocumentNotFound, match="changed"):
            await store.fetch(REF, tmp_path / "target")
        await store.close()

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (s3_error(403, "AccessDenied"), AccessDenied),
        (s3_error(403, "ExpiredToken"), AccessDenied),
        (s3_error(403, "RequestTimeTooSkewed"), AccessDenied),
        (s3_error(403, "InvalidObjectState"), AccessDenied),
        (Answer(403, b"<html/>", {"Content-Type": "text/html"}), AccessDenied),
        (s3_error(404, "NoSuchKey"), DocumentNotFound),
        (s3_error(404, "NoSuchBucket"), DocumentNotFound),
        (s3_error(412, "PreconditionFailed"), DocumentNotFound),
        (s3_error(400, "AuthorizationHeaderMalformed"), ConfigurationError),
        (s3_error(400, "SomethingNew"), ConfigurationError),
        (Answer(404, b"<html>web console</html>", {"Content-Type": "text/html"}), ConfigurationError),
        (Answer(405, b"no", {"Content-Type": "text/plain"}), ConfigurationError),
    ],
)
async def test_what_does_not_pass_is_not_tried_again(faulty_server, trouble, kind, tmp_path):
    with faulty_server(trouble) as server:
        store = store_at(server.endpoint)
        with pytest.raises(kind) as caught:
            await store.fetch(REF, tmp_path / "target")
        await store.close()

    assert len(server.requests) == 1
    assert caught.value.remedy
    assert "secret-key" not in str(failure_of(caught.value))


async def test_no_such_bucket_names_the_bucket(faulty_server):
    with faulty_server(s3_error(404, "NoSuchBucket")) as server:
        store = store_at(server.endpoint)
        with pytest.raises(DocumentNotFound, match=f"no bucket {BUCKET}"):
            await anext(store.list(BUCKET))
        await store.close()


async def test_folder_markers_are_no_documents(faulty_server):
    with faulty_server(listing("in/", "in/a", "in/sub/")) as server:
        store = store_at(server.endpoint)
        assert [ref.key async for ref in store.list(BUCKET)] == ["in/a"]
        await store.close()


async def test_a_dead_endpoint_is_unavailable(faulty_server):
    with faulty_server(listing()) as server:
        gone = server.endpoint
    store = store_at(gone, tries=2)
    for request in (store.check(), store.head(BUCKET, "key"), store.put(BUCKET, "key", b"x")):
        with pytest.raises(ObjectStoreUnavailable):
            await request
    await store.close()


async def test_a_host_that_is_not_known_is_unavailable():
    store = store_at("http://no-such-host.invalid:9000", tries=1)
    with pytest.raises(ObjectStoreUnavailable):
        await store.check()
    await store.close()


async def test_plain_http_where_tls_is_asked_for(faulty_server):
    with faulty_server(listing()) as server:
        store = store_at(server.endpoint.replace("http:", "https:"))
        with pytest.raises(DocmillError) as caught:
            await store.check()
        await store.close()

    assert caught.value.code == "configuration"


async def test_cancelling_leaves_no_part_behind(faulty_server, tmp_path):
    with faulty_server(Answer(silent=True)) as server:
        store = store_at(server.endpoint, read_timeout=0.5, tries=1)
        task = asyncio.create_task(store.fetch(REF, tmp_path / "target"))
        assert await asyncio.to_thread(server.asked.wait, 10.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.close()

    assert list(tmp_path.iterdir()) == []
