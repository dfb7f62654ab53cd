"""Objects in S3, MinIO and whatever else speaks S3, through the ``minio`` client in threads."""

from __future__ import annotations

import asyncio
import io
import itertools
import mimetypes
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import certifi
import urllib3
from minio import Minio
from minio.credentials.providers import Provider, StaticProvider

from docmill.failures import AccessDenied, ConfigurationError, DocumentNotFound, ObjectStoreUnavailable
from docmill.ports import ObjectRef
from docmill.retrying import backoff_seconds
from storage.objects.local_files import CHUNK_BYTES, opened, write_whole
from storage.objects.metadata import PREFIX, checked, decoded, encoded
from storage.objects.s3_credentials import CredentialsChain
from storage.objects.s3_errors import translated

Result = TypeVar("Result")
Page = list[ObjectRef]
LIST_PAGE = 1000
DEFAULT_TYPE = "application/octet-stream"


class S3Store:
    """An S3 server as an object store.

    Requests run in threads, at most ``concurrency`` at a time, each with a pooled connection. 5xx answers, time-outs
    and broken connections are tried again here, whole operations at a time, and nowhere below: the client's own
    retries are off, so that the tries do not multiply.

    Args:
        endpoint: ``https://host:port`` or ``host:port``.
        region: None asks the server for each bucket's.
        access_key: None takes the credentials chain: AWS_* and MINIO_* variables, ~/.aws, ~/.mc, the machine's role.
        secret_key: with ``access_key``.
        session_token: with temporary keys.
        secure: TLS; only for an endpoint without a scheme.
        ca_file: PEM file of the authority that signed the server's certificate.
        virtual_host: ``bucket.host/key`` instead of ``host/bucket/key``; None leaves it to the client (AWS: yes).
        concurrency: requests at a time.
        connect_timeout_seconds: to the first answer of the server's machine.
        read_timeout_seconds: between two pieces of an answer.
        tries: how often an operation is made before its transient error comes out; 1 is no retry.
        wait_seconds: how long to wait after the n-th failure (1, 2, …) given the server's Retry-After.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        region: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        session_token: str | None = None,
        secure: bool = True,
        ca_file: Path | None = None,
        virtual_host: bool | None = None,
        concurrency: int = 16,
        connect_timeout_seconds: float = 5.0,
        read_timeout_seconds: float = 60.0,
        tries: int = 4,
        wait_seconds: Callable[[int, float | None], float] | None = None,
    ) -> None:
        host, secure = _host(endpoint, secure)
        if ca_file is not None and not ca_file.is_file():
            raise ConfigurationError(f"objects.ca_file {ca_file} does not exist")
        self._pool = urllib3.PoolManager(
            num_pools=8,
            maxsize=concurrency,
            timeout=urllib3.Timeout(connect=connect_timeout_seconds, read=read_timeout_seconds),
            retries=False,
            cert_reqs="CERT_REQUIRED",
            ca_certs=str(ca_file) if ca_file else os.environ.get("SSL_CERT_FILE") or certifi.where(),
        )
        if access_key is not None and not secret_key:
            raise ConfigurationError("objects.access_key is set but objects.secret_key is not")
        credentials: Provider = (
            StaticProvider(access_key, secret_key or "", session_token)
            if access_key is not None
            else CredentialsChain()
        )
        with translated("reach"):
            self._client = Minio(host, secure=secure, region=region, http_client=self._pool, credentials=credentials)
        if virtual_host is True:
            self._client.enable_virtual_style_endpoint()  # type: ignore[no-untyped-call]
        elif virtual_host is False:
            self._client.disable_virtual_style_endpoint()  # type: ignore[no-untyped-call]
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="s3")
        self._tries = tries
        self._wait_seconds = wait_seconds or (lambda n, asked: backoff_seconds(n, retry_after=asked))

    async def close(self) -> None:
        """Give threads and connections back."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._pool.clear()

    # --- the port -------------------------------------------------------------------------------------------------

    async def list(self, bucket: str, prefix: str = "") -> AsyncIterator[ObjectRef]:
        """All objects whose key starts with the prefix; folder markers (``forms/`` with no bytes) are left out.

        A thousand at a time. After a passing error in the middle it goes on behind the last key that came.
        """
        last: str | None = None
        while True:
            page = await self._call(lambda: self._page(bucket, prefix, last), "list", bucket)  # noqa: B023
            for ref in page:
                if not (ref.key.endswith("/") and ref.size == 0):
                    yield ref
            if len(page) < LIST_PAGE:
                return
            last = page[-1].key

    async def head(self, bucket: str, key: str) -> ObjectRef:
        """The object's current version with its user metadata."""

        def ask() -> ObjectRef:
            found = self._client.stat_object(bucket, key)
            return _ref(bucket, found)

        return await self._call(ask, "look at", bucket, key)

    async def fetch(self, ref: ObjectRef, target: Path) -> None:
        """Write exactly the version that ``ref`` names to ``target`` (whole or not at all)."""
        await self._call(lambda: self._download(ref, target), "read", ref.bucket, ref.key)

    async def put(
        self,
        bucket: str,
        key: str,
        source: Path | bytes,
        *,
        content_type: str | None = None,
        metadata: dict[str, str] | None = None,
    ) -> ObjectRef:
        """Store bytes or a file whole; makes the bucket where it is missing."""
        facts = checked(metadata)
        media_type = content_type or mimetypes.guess_type(key)[0] or DEFAULT_TYPE
        headers: dict[str, str | list[str] | tuple[str]] = {name: encoded(value) for name, value in facts.items()}

        def send() -> ObjectRef:
            with opened(source) as data:
                size = data.seek(0, io.SEEK_END)
                data.seek(0)
                sent = self._client.put_object(bucket, key, data, size, media_type, metadata=headers or None)
            when = parsedate_to_datetime(sent.http_headers.get("Date") or "Thu, 01 Jan 1970 00:00:00 GMT")
            return ObjectRef(bucket, key, sent.etag or "", size, when, sent.version_id, media_type, facts)

        try:
            return await self._call(send, "write", bucket, key)
        except DocumentNotFound as error:
            if error.detail.get("s3_code") != "NoSuchBucket":
                raise
        await self._call(lambda: self._make_bucket(bucket), "make", bucket)
        return await self._call(send, "write", bucket, key)

    async def presigned_get(self, bucket: str, key: str, *, expires_seconds: int = 3600) -> str:
        """A URL that a browser can open without credentials."""

        def sign() -> str:
            return str(self._client.presigned_get_object(bucket, key, expires=timedelta(seconds=expires_seconds)))

        return await self._call(sign, "sign a link to", bucket, key)

    async def delete(self, bucket: str, key: str) -> None:
        """Remove the object; nothing happens where there is none."""
        try:
            await self._call(lambda: self._client.remove_object(bucket, key), "delete", bucket, key)
        except DocumentNotFound:
            return

    async def check(self) -> None:
        """Raise where the store cannot be reached or refuses the credentials.

        Keys that are known but may not list buckets pass: rights on one bucket are enough for docmill.
        """
        try:
            await self._call(self._client.list_buckets, "list")
        except AccessDenied as error:
            if error.detail.get("s3_code") != "AccessDenied":
                raise

    # --- one request ----------------------------------------------------------------------------------------------

    async def _call(
        self, request: Callable[[], Result], operation: str, bucket: str | None = None, key: str | None = None
    ) -> Result:
        def once() -> Result:
            with translated(operation, bucket, key):
                return request()

        loop = asyncio.get_running_loop()
        for n in itertools.count(1):
            try:
                return await loop.run_in_executor(self._threads, once)
            except ObjectStoreUnavailable as error:
                if n >= self._tries:
                    raise
                await asyncio.sleep(self._wait_seconds(n, error.detail.get("retry_after")))
        raise AssertionError("unreachable")

    def _page(self, bucket: str, prefix: str, last: str | None) -> Page:
        found = self._client.list_objects(bucket, prefix=prefix or None, recursive=True, start_after=last)
        # The client asks for the next thousand only when it is asked for more than the first.
        return [_ref(bucket, each) for each in itertools.islice(found, LIST_PAGE)]

    def _download(self, ref: ObjectRef, target: Path) -> None:
        response = self._client.get_object(
            ref.bucket,
            ref.key,
            version_id=ref.version_id,
            request_headers=None if ref.version_id else {"If-Match": f'"{ref.etag}"'},
        )
        try:
            etag = (response.headers.get("ETag") or "").strip('"')
            if etag and etag != ref.etag:
                raise DocumentNotFound(f"s3://{ref.bucket}/{ref.key} has changed since it was listed")
            # As it is stored: a Content-Encoding is the document's own affair.
            write_whole(response.stream(CHUNK_BYTES, decode_content=False), target, ref.size, ref.key)
        finally:
            response.close()
            response.release_conn()

    def _make_bucket(self, bucket: str) -> None:
        if not self._client.bucket_exists(bucket):
            self._client.make_bucket(bucket)


def _ref(bucket: str, found: Any) -> ObjectRef:
    """The client's object as a reference. Its metadata are the answer's headers, or None in listings."""
    headers = found.metadata or {}
    return ObjectRef(
        bucket=bucket,
        key=found.object_name,
        etag=(found.etag or "").strip('"'),
        size=found.size or 0,
        last_modified=found.last_modified or datetime.fromtimestamp(0, UTC),
        version_id=found.version_id if found.version_id != "null" else None,
        content_type=headers.get("Content-Type") or found.content_type,
        metadata={
            name.lower()[len(PREFIX) :]: decoded(value)
            for name, value in headers.items()
            if name.lower().startswith(PREFIX)
        },
    )


def _host(endpoint: str, secure: bool) -> tuple[str, bool]:
    """``host:port`` and whether TLS, of an endpoint with or without a scheme."""
    parts = urlsplit(endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise ConfigurationError("objects.endpoint is not a URL", remedy="like https://minio.example.org:9000")
    if parts.path.strip("/") or parts.query or parts.username or parts.password:
        raise ConfigurationError(
            "objects.endpoint has more than a host and a port",
            remedy="leave out path and credentials; they belong in objects.access_key and objects.secret_key",
        )
    return parts.netloc, parts.scheme == "https"
