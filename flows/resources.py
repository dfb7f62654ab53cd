"""The composition root: settings become the world that the tasks work in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

from docmill.document_types import DocumentType, load_document_type
from docmill.failures import ConfigurationError
from docmill.ports import ObjectStore, PageExtractor
from docmill.rendering import RenderLimits
from docmill.settings import Settings, cores, load_settings
from flows.endpoints import database_url, object_access
from flows.model_servers import ModelServer, SharedModelServers
from serving.ocr.reader import OcrOptions, OcrReader
from serving.ocr_engine import OcrExtractor
from serving.processes import WorkerPool
from storage.document_files import DocumentFiles
from storage.ledger.database import Database
from storage.ledger.model_servers import PostgresServerRegistry
from storage.ledger.postgres import PostgresLedger
from storage.objects.s3 import S3Store
from storage.objects.sources import store_for
from storage.queries import LedgerQueries


@dataclass
class World:
    """Everything that is open in this process; implements ``tasks.resources.Resources``."""

    settings: Settings
    ledger: PostgresLedger
    queries: LedgerQueries
    pool: WorkerPool
    files: DocumentFiles
    registry: PostgresServerRegistry

    @cached_property
    def limits(self) -> RenderLimits:
        """How large documents and pages may be."""
        return render_limits(self.settings)

    @cached_property
    def ocr_options(self) -> OcrOptions:
        """How text is read off pages."""
        return ocr_options(self.settings)

    @cached_property
    def _s3(self) -> S3Store:
        return s3_store(self.settings)

    @cached_property
    def _servers(self) -> SharedModelServers:
        return SharedModelServers(self.settings, self.registry)

    def model_server(self, profile: str | None = None) -> contextlib.AbstractAsyncContextManager[ModelServer]:
        """The servers of a model, ready; one hold for all who ask for the same model in this event loop."""
        return self._servers.use(profile)

    def store_of(self, bucket: str) -> ObjectStore:
        """An absolute path is a folder, anything else a bucket."""
        return store_for(bucket, lambda: self._s3)

    def extractor(self, engine: str) -> PageExtractor:
        """The engine of that name.

        Raises:
            ConfigurationError: there is none.
        """
        return make_extractor(engine, self.settings)

    def document_type(self, name: str) -> DocumentType:
        """The document type of that name."""
        return load_document_type(name, self.settings.pipeline.document_types)


@dataclass
class _Shared:
    """The open world of one event loop, and who uses it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    stack: contextlib.AsyncExitStack | None = None
    world: World | None = None


_open: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


@contextlib.asynccontextmanager
async def open_resources() -> AsyncIterator[World]:
    """Open the world, or share the one that is open in this event loop; the last to leave closes it.

    Raises:
        DocmillError: a setting is wrong, or Postgres cannot be reached or has no tables yet.
    """
    shared = _open.setdefault(asyncio.get_running_loop(), _Shared())
    async with shared.lock:
        if shared.world is None:
            shared.stack = contextlib.AsyncExitStack()
            try:
                shared.world = await _enter(shared.stack, load_settings())
            except BaseException:
                await shared.stack.aclose()
                raise
        shared.users += 1
    try:
        yield shared.world
    finally:
        async with shared.lock:
            shared.users -= 1
            if not shared.users and shared.stack is not None:
                stack, shared.stack, shared.world = shared.stack, None, None
                await stack.aclose()


async def _enter(stack: contextlib.AsyncExitStack, settings: Settings) -> World:
    files = DocumentFiles(settings.data_dir / "cache", settings.pipeline.cache_bytes)
    stack.callback(files.close)
    database = await stack.enter_async_context(Database(database_url(settings), pool_size=settings.database.pool_size))
    pool = await stack.enter_async_context(
        WorkerPool(
            settings.pipeline.processes,
            recycle_after=settings.pipeline.recycle_pages,
            memory_limit_bytes=settings.pipeline.process_memory_bytes,
            log_file=settings.data_dir / "logs" / "pages.log",
        )
    )
    ledger, registry = PostgresLedger(database), PostgresServerRegistry(database)
    return World(settings, ledger, LedgerQueries(database), pool, files, registry)


def render_limits(settings: Settings) -> RenderLimits:
    """The limits that the settings ask for."""
    pipeline = settings.pipeline
    return RenderLimits(
        max_document_bytes=pipeline.max_document_bytes,
        max_pages=pipeline.max_pages,
        max_pixels=pipeline.max_pixels,
        max_source_pixels=pipeline.max_source_pixels,
    )


def ocr_options(settings: Settings) -> OcrOptions:
    """The OCR options that the settings ask for."""
    ocr = settings.ocr
    threads = ocr.threads or max(1, cores() // settings.pipeline.processes)
    return OcrOptions(threads=threads, backend=ocr.backend, max_pixels=ocr.max_pixels, straighten=ocr.straighten)


def s3_store(settings: Settings) -> S3Store:
    """A client of the S3 server that the settings name, or of the embedded one."""
    objects, access = settings.objects, object_access(settings)
    return S3Store(
        access.endpoint,
        access_key=access.access_key,
        secret_key=access.secret_key,
        region=access.region,
        ca_file=objects.ca_file,
        virtual_host=None if objects.addressing == "auto" else objects.addressing == "virtual",
        concurrency=objects.concurrency,
        read_timeout_seconds=objects.timeout_seconds,
        tries=objects.retries + 1,
    )


def make_extractor(engine: str, settings: Settings) -> PageExtractor:
    """The engine of that name.

    Raises:
        ConfigurationError: there is none.
    """
    if engine == "ocr":
        return OcrExtractor(OcrReader(ocr_options(settings)).fingerprint)
    raise ConfigurationError(f"no engine {engine!r} in this installation", remedy="use engine: ocr")
