"""What became of the documents of a set, as scoring takes it."""

from __future__ import annotations

from dataclasses import dataclass

from docmill.extraction import Extraction, Field, PageText


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """One page: its extraction, or the code of its failure.

    Attributes:
        number: 1-based.
        text: what the OCR saw, with boxes; None where it is not at hand (then the extraction's text is compared, in
            the order in which it stands there).
        seconds: that reading it took.
    """

    number: int
    extraction: Extraction | None = None
    failure: str | None = None
    text: PageText | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class DocumentOutcome:
    """One document: its pages, or the code of the failure that kept it from being opened."""

    file: str
    pages: tuple[PageOutcome, ...] = ()
    failure: str | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of all pages that were read."""
        return tuple(f for page in self.pages if page.extraction is not None for f in page.extraction.fields)

    def best(self, name: str) -> Field | None:
        """The surest field of that name on any page; of equals the first."""
        named = [f for f in self.fields if f.name == name and f.row is None]
        return max(named, key=lambda f: f.confidence, default=None)
