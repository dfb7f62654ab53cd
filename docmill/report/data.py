"""What a report shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from docmill.extraction import Block, Field


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Why a document or a page was not read, and what to do about it."""

    code: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ReportPage:
    """One page.

    Attributes:
        number: 1-based.
        image: JPEG of the page as a viewer shows it (see :func:`docmill.report.page_picture`); None: not shown.
        width, height: pixels of ``image``; they give the page its shape.
        missing: required fields that the page does not show; the last page of a document may carry the document's.
        failure: why it was not read; then there are no fields.
    """

    number: int
    image: bytes | None
    width: int
    height: int
    fields: tuple[Field, ...] = ()
    blocks: tuple[Block, ...] = ()
    missing: tuple[str, ...] = ()
    failure: ReportFailure | None = None

    @property
    def to_review(self) -> int:
        """Fields that a person should look at, and required ones that are missing."""
        return sum(field.needs_review for field in self.fields) + len(self.missing)


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """One document: its pages, or why it could not be opened."""

    name: str
    document_type: str
    pages: tuple[ReportPage, ...] = ()
    failure: ReportFailure | None = None

    @property
    def failed(self) -> bool:
        """Whether it, or any of its pages, was not read."""
        return self.failure is not None or any(page.failure is not None for page in self.pages)

    @property
    def to_review(self) -> int:
        """Over all pages."""
        return sum(page.to_review for page in self.pages)

    @property
    def field_count(self) -> int:
        """Over all pages."""
        return sum(len(page.fields) for page in self.pages)


@dataclass(frozen=True, slots=True)
class ReportData:
    """One batch.

    Attributes:
        title: heading, such as the batch's id or source.
        source: where the documents came from, without credentials.
        engine: that read them.
        made_at: when the batch ended.
        seconds: that it took; None where it is not known (no pages per second then).
        unchanged: documents that were read before and not again.
        command: a line for the foot: how to make the report anew.
    """

    title: str
    source: str
    engine: str
    made_at: datetime
    documents: tuple[ReportDocument, ...]
    seconds: float | None = None
    unchanged: int = 0
    command: str = ""

    @property
    def pages(self) -> int:
        """Of all documents."""
        return sum(len(document.pages) for document in self.documents)

    @property
    def pages_per_second(self) -> float | None:
        """Pages over the batch's seconds."""
        return self.pages / self.seconds if self.seconds else None
