"""What stands on a page: text as it was read, and what was made of it.

``PageText`` is what the OCR worker sees (ink: lines, marks, ruled cells). ``Extraction`` is what an engine makes of it
for a document type. All boxes are :class:`docmill.geometry.Box`: fractions of the page as a viewer shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum

from docmill.geometry import Box


@dataclass(frozen=True, slots=True)
class Word:
    """One word (Latin) or run of characters (Chinese)."""

    text: str
    box: Box
    confidence: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text as the OCR found it: one stretch without a wide gap."""

    text: str
    box: Box
    confidence: float
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """A check box, radio button or bracket pair seen in the picture, and whether there is ink in it.

    ``fill`` is the share of dark pixels inside its frame, 0 to 1.
    """

    box: Box
    checked: bool
    fill: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a ruled table: 0-based row and column and how many it spans."""

    box: Box
    row: int
    column: int
    row_span: int = 1
    column_span: int = 1


@dataclass(frozen=True, slots=True)
class Grid:
    """A table drawn with lines."""

    box: Box
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class PageText:
    """What the OCR worker saw on one page.

    Attributes:
        lines: in reading order.
        turned: degrees clockwise by which the page had to be turned to be upright: 0, 90, 180 or 270.
        skew: degrees counter-clockwise that were taken out before reading.
        width, height: pixels of the picture that was read, before turning.
        scribbles: handwriting that was not read as text, near labels for signatures; None where none was looked for.
    """

    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    grids: tuple[Grid, ...] = ()
    turned: int = 0
    skew: float = 0.0
    width: int = 0
    height: int = 0
    scribbles: tuple[Box, ...] | None = None

    @property
    def text(self) -> str:
        """All lines in reading order, one a line."""
        return "\n".join(line.text for line in self.lines)


class BlockKind(StrEnum):
    """What a laid-out piece of a page is."""

    TITLE = "title"
    TEXT = "text"
    TABLE = "table"
    FIELD = "field"
    CHECKBOX = "checkbox"
    SIGNATURE = "signature"


@dataclass(frozen=True, slots=True)
class TableData:
    """A table's cells as text; ``header`` is empty where none was recognised. Every row has as many cells."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A laid-out piece of a page, in reading order."""

    kind: BlockKind
    text: str
    box: Box
    confidence: float
    table: TableData | None = None


class FieldKind(StrEnum):
    """The type of a field's value."""

    TEXT = "text"
    NUMBER = "number"
    MONEY = "money"
    DATE = "date"
    BOOLEAN = "boolean"
    ENUM = "enum"
    TABLE = "table"


FieldValue = str | Decimal | date | bool | None


@dataclass(frozen=True, slots=True)
class Field:
    """A named value with its place and confidence.

    Attributes:
        name: the document type's name of it; for ``generic`` the printed label.
        kind: decides which typed column it fills.
        raw: what was read, as it stands on the page.
        value: normalised: Decimal for number and money, date for date, bool for boolean, else str. None: it could not
            be normalised (``raw`` still says what was read).
        confidence: 0 to 1.
        box: where the value stands; None where no ink supports it.
        row: for a column of a table, the 0-based row; else None. Its name is then ``table.column``.
        currency: ISO 4217, for money where it is known.
        needs_review: below the type's threshold, failed a validator, or was not normalised.
        notes: why, as short codes (``unsupported``, ``invalid_pattern``, ``not_a_date``, ...).
    """

    name: str
    kind: FieldKind
    raw: str
    value: FieldValue
    confidence: float
    box: Box | None
    row: int | None = None
    currency: str | None = None
    needs_review: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one attempt produced from one page.

    Attributes:
        missing: required fields of the document type that were not found.
        raw: the engine's own answer, JSON-able, kept for the record.
    """

    engine: str
    document_type: str
    fields: tuple[Field, ...]
    blocks: tuple[Block, ...]
    text: str
    confidence: float
    missing: tuple[str, ...] = ()
    raw: dict[str, object] = field(default_factory=dict)

    @property
    def needs_review(self) -> bool:
        """Whether a person should look: a field that needs it, or a required one that is missing."""
        return bool(self.missing) or any(f.needs_review for f in self.fields)
