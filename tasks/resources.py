"""What the steps need, opened by the composition root (flows/resources.py)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from docmill.document_types import DocumentType
from docmill.ledger import Ledger
from docmill.ports import ObjectRef, ObjectStore, PageExtractor
from docmill.rendering import RenderLimits
from docmill.settings import Settings
from serving.ocr.reader import OcrOptions
from serving.processes import WorkerPool
from storage.queries import LedgerQueries


class DocumentFiles(Protocol):
    """Documents on the local disk while they are worked on."""

    def hold(self, ref: ObjectRef, store: ObjectStore) -> AbstractAsyncContextManager[Path]:
        """The document's bytes as a file that stays there until the context ends."""
        ...


class Resources(Protocol):
    """The world, as one worker of a run sees it. Shared by the slots of a process."""

    @property
    def settings(self) -> Settings:
        """All settings."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        ...

    @property
    def queries(self) -> LedgerQueries:
        """The ledger's read side."""
        ...

    @property
    def pool(self) -> WorkerPool:
        """Processes that render and read, killable."""
        ...

    @property
    def limits(self) -> RenderLimits:
        """How large documents and pages may be."""
        ...

    @property
    def ocr_options(self) -> OcrOptions:
        """How text is read off pages."""
        ...

    @property
    def files(self) -> DocumentFiles:
        """Documents on the local disk."""
        ...

    def store_of(self, bucket: str) -> ObjectStore:
        """The store that holds a bucket: an absolute path is a folder, anything else is S3."""
        ...

    def extractor(self, engine: str) -> PageExtractor:
        """The engine of that name.

        Raises:
            ConfigurationError: there is none.
        """
        ...

    def document_type(self, name: str) -> DocumentType:
        """The document type of that name."""
        ...


class OpenResources(Protocol):
    """Opens the resources of this process, or shares those that are open.

    A module-level function, so that it travels to Ray and Dask workers by name.
    """

    def __call__(self) -> AbstractAsyncContextManager[Resources]:
        """Open or share."""
        ...
