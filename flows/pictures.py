"""Pictures of pages that were read, drawn anew from their documents: the ledger keeps none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from docmill.failures import DocmillError
from docmill.ports import ObjectRef, ObjectStore, PageImage
from docmill.settings import Settings
from flows.resources import render_limits, s3_store
from serving.page_reading import picture_page
from serving.processes import WorkerPool
from storage.document_files import DocumentFiles
from storage.objects.sources import store_for


class Pictures:
    """Draws pages of documents of the ledger. Made by :func:`open_pictures`."""

    def __init__(self, settings: Settings, pool: WorkerPool, files: DocumentFiles) -> None:
        self._settings = settings
        self._pool = pool
        self._files = files
        self._s3: ObjectStore | None = None

    def _store(self, bucket: str) -> ObjectStore:
        def s3() -> ObjectStore:
            if self._s3 is None:
                self._s3 = s3_store(self._settings)
            return self._s3

        return store_for(bucket, s3)

    async def pages(
        self, document: dict[str, Any], page_nos: Sequence[int], *, long_side: int
    ) -> dict[int, PageImage | DocmillError]:
        """The pictures of these pages (1-based), or why there is none.

        Args:
            document: a row of ``v_documents``.
            page_nos: which.
            long_side: pixels.
        """
        ref = ObjectRef(
            document["bucket"], document["key"], document["etag"], document["size_bytes"],
            document["last_modified"] or datetime.now().astimezone(), document["version_id"],
        )  # fmt: skip
        settings = self._settings.pipeline
        place = f"{ref.bucket}/{ref.key}"
        passwords = settings.passwords_for(place if place.startswith("/") else f"s3://{place}")
        limits = render_limits(self._settings)

        async with contextlib.AsyncExitStack() as stack:
            try:
                path = await stack.enter_async_context(self._files.hold(ref, self._store(ref.bucket)))
            except DocmillError as error:
                return dict.fromkeys(page_nos, error)

            async def draw(page_no: int) -> PageImage | DocmillError:
                try:
                    return await self._pool.run(
                        picture_page, path, document["media_type"], page_no, limits, passwords, long_side,
                        deadline_seconds=settings.page_deadline_seconds,
                    )  # fmt: skip
                except DocmillError as error:
                    return error

            drawn = await asyncio.gather(*(draw(page_no) for page_no in page_nos))
        return dict(zip(page_nos, drawn, strict=True))


@contextlib.asynccontextmanager
async def open_pictures(settings: Settings) -> AsyncIterator[Pictures]:
    """Processes and files to draw pages with, ended at the end."""
    files = DocumentFiles(settings.data_dir / "cache", settings.pipeline.cache_bytes)
    try:
        async with WorkerPool(settings.pipeline.processes) as pool:
            yield Pictures(settings, pool, files)
    finally:
        files.close()
