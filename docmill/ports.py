"""The ports: what the flows need from the world, as small protocols."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from docmill.document_types import DocumentType
from docmill.extraction import Extraction, PageText


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One version of one object, as a listing names it. References travel; bytes do not.

    Attributes:
        bucket: the bucket, or for the folder store the folder's absolute path.
        key: path inside it, with forward slashes.
        etag: changes whenever the bytes change (without quotes).
        size: bytes.
        metadata: user metadata, lower-case keys, without the ``x-amz-meta-`` prefix. Empty in listings.
    """

    bucket: str
    key: str
    etag: str
    size: int
    last_modified: datetime
    version_id: str | None = None
    content_type: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


class ObjectStore(Protocol):
    """A place that holds documents.

    Every method raises ObjectStoreUnavailable (transient), AccessDenied or DocumentNotFound (permanent), never an
    error of the client library.
    """

    def list(self, bucket: str, prefix: str = "") -> AsyncIterator[ObjectRef]:
        """All objects under the prefix in order of key, page after page."""
        ...

    async def head(self, bucket: str, key: str) -> ObjectRef:
        """The object's current version with its user metadata."""
        ...

    async def fetch(self, ref: ObjectRef, target: Path) -> None:
        """Write exactly the version that ``ref`` names to ``target`` (whole or not at all).

        Raises:
            DocumentNotFound: it is gone, or now has another etag and no version to ask for.
        """
        ...

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
        ...

    async def presigned_get(self, bucket: str, key: str, *, expires_seconds: int = 3600) -> str:
        """A URL that a browser can open without credentials."""
        ...

    async def delete(self, bucket: str, key: str) -> None:
        """Remove the object; nothing happens where there is none."""
        ...

    async def check(self) -> None:
        """Raise where the store cannot be reached or refuses the credentials."""
        ...


@dataclass(frozen=True, slots=True)
class PageImage:
    """One page as a picture.

    Attributes:
        data: encoded bytes, as ``media_type`` says (image/jpeg or image/png), RGB or gray, on white.
        width, height: pixels. The page as a viewer shows it (after /Rotate and EXIF orientation).
        dpi: at which it was drawn; None for a picture that does not say.
    """

    data: bytes
    media_type: str
    width: int
    height: int
    dpi: float | None = None


@dataclass(frozen=True, slots=True)
class PageInput:
    """What an engine gets to read one page: the picture, what the OCR saw on it, and where it belongs.

    ``image`` is None for engines that say ``needs_image = False``.
    """

    image: PageImage | None
    text: PageText
    page_no: int
    page_count: int


class PageExtractor(Protocol):
    """An engine: reads one page for a document type.

    Raises TransientError, GenerationError or PermanentError; never returns an extraction that it knows to be wrong.
    """

    @property
    def engine(self) -> str:
        """``ocr`` or ``vision``."""
        ...

    @property
    def fingerprint(self) -> str:
        """Names all about the engine that changes its answers (models, prompts, code); in extractor_version."""
        ...

    @property
    def needs_image(self) -> bool:
        """Whether it looks at the picture itself; pictures are not encoded and carried for engines that do not."""
        ...

    async def extract(self, page: PageInput, document_type: DocumentType) -> Extraction:
        """Read the page."""
        ...
