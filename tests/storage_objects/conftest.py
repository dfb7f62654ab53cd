import threading
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from docmill.ports import ObjectStore
from storage.embedded.seaweed import S3Access
from storage.objects.folder import FolderStore
from storage.objects.s3 import S3Store


@dataclass(frozen=True)
class Place:
    """A store with a bucket that nobody else uses and that does not exist yet."""

    store: ObjectStore
    bucket: str


@pytest.fixture
async def s3(object_store_access: S3Access) -> AsyncIterator[Place]:
    store = S3Store(
        object_store_access.url,
        region=object_store_access.region,
        access_key=object_store_access.access_key,
        secret_key=object_store_access.secret_key,
        concurrency=8,
    )
    yield Place(store, f"test-{uuid.uuid4().hex}")
    await store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    return Place(FolderStore(), str(tmp_path / "bucket"))


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    """Every contract test runs over both."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def faulty_server() -> type["FaultyServer"]:
    """A small HTTP server that answers as it is told: what no real store does on demand."""
    return FaultyServer


class FaultyServer:
    """Gives the answers in turn, the last one again and again; ``requests`` are the paths it was asked for."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[str] = []
        self.asked = threading.Event()
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _next(self, path: str) -> Any:
        self.requests.append(path)
        self.asked.set()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def _handler(self) -> Callable[..., BaseHTTPRequestHandler]:
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                told = faulty._next(self.path)
                if told.silent:
                    faulty._over.wait()
                    self.close_connection = True
                    return
                self.send_response(told.status)
                for name, value in told.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(told.body) if told.length is None else told.length))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(told.body)
                self.close_connection = told.length is not None

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        return Handler
