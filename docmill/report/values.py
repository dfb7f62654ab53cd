"""Values and codes as the report shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from docmill.drawing.palette import level_of, percent
from docmill.extraction import Block, BlockKind, Field, FieldKind
from docmill.normalisation.text import comparison_form

_TABLE_COLUMN = re.compile(r"(.+?)\.(?=\S)(.+)", re.DOTALL)
_STATE = re.compile(r"\s*(\[[xXvV✓ ]?\]|[☐☑☒□■✓✔])(.*)", re.DOTALL)
_EMPTY = ("[ ]", "[]", "☐", "□")
_NUMERIC = (FieldKind.MONEY, FieldKind.NUMBER)
_NOTES = {
    "unsupported": "no ink on the page supports it",
    "invalid_pattern": "does not have the expected form",
    "not_a_date": "could not be read as a date",
    "not_an_amount": "could not be read as an amount",
    "not_a_number": "could not be read as a number",
    "not_a_boolean": "could not be read as yes or no",
    "not_an_option": "is none of the allowed values",
}


def shown(field: Field) -> str:
    """The normalised value, or what was read where there is none."""
    value = field.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        amount = f"{value:,f}"
        return f"{amount} {field.currency}" if field.currency else amount
    if isinstance(value, date):
        return value.isoformat()
    return field.raw if value is None else value


def raw_if_other(field: Field) -> str:
    """What was read, where it says something else than what is shown (a sign of currency or a comma does not)."""
    value = field.value
    if isinstance(value, bool) or not field.raw.strip():
        return ""
    if isinstance(value, Decimal) and comparison_form(field.raw).endswith(comparison_form(f"{value:f}")):
        return ""
    return "" if field.raw.strip().casefold() == shown(field).casefold() else field.raw


def note(code: str) -> str:
    """A note's code in words."""
    return _NOTES.get(code, code.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Mark:
    """A field with its number on the page, which links box and row. ``level`` is how far it can be trusted."""

    id: str
    field: Field

    @property
    def level(self) -> str:
        """``sure``, ``fair`` or ``doubtful``."""
        return level_of(self.field.confidence).value

    @property
    def percent(self) -> str:
        """Confidence as a whole percentage."""
        return percent(self.field.confidence)

    @property
    def text(self) -> str:
        """The value as shown."""
        return shown(self.field)

    @property
    def raw(self) -> str:
        """What was read, where it differs."""
        return raw_if_other(self.field)

    @property
    def tick(self) -> bool | None:
        """The state of a check box; None for other values."""
        return self.field.value if isinstance(self.field.value, bool) else None

    @property
    def notes(self) -> str:
        """Why it needs review."""
        return "; ".join(note(code) for code in self.field.notes)

    @property
    def label(self) -> str:
        """For screen readers and tooltips."""
        review = ", needs review" if self.field.needs_review else ""
        return f"{self.field.name}: {self.text} ({self.percent}{review})"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the document type put together from its cells; None where a cell was not read.

    ``columns``: name, and whether its values are numbers.
    """

    name: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Mark | None, ...], ...]


def tables_of(marks: Sequence[Mark]) -> list[Table]:
    """The marks that are cells (named ``table.column``), as tables in order of appearance."""
    names: dict[str, list[Mark]] = {}
    for mark in marks:
        if mark.field.row is not None:
            names.setdefault(_split(mark.field.name)[0], []).append(mark)
    tables = []
    for name, cells in names.items():
        numeric = {_split(mark.field.name)[1]: mark.field.kind in _NUMERIC for mark in cells}
        by_place = {(mark.field.row, _split(mark.field.name)[1]): mark for mark in cells}
        numbers = sorted({mark.field.row for mark in cells if mark.field.row is not None})
        rows = tuple(tuple(by_place.get((row, column)) for column in numeric) for row in numbers)
        tables.append(Table(name, tuple(numeric.items()), rows))
    return tables


@dataclass(frozen=True, slots=True)
class Tick:
    """A check box that no field stands for; ``checked`` is None where its text does not begin with a mark."""

    checked: bool | None
    label: str


def tick_of(block: Block) -> Tick:
    """A check-box block (``[x] label``, ``☐ label``) as state and label."""
    match = _STATE.match(block.text)
    return Tick(None, block.text.strip()) if match is None else Tick(match[1] not in _EMPTY, match[2].strip())


def _split(name: str) -> tuple[str, str]:
    """Table and column: at the first dot that no blank follows (printed titles such as ``12. Items`` have others)."""
    match = _TABLE_COLUMN.match(name)
    return (match[1], match[2]) if match else ("table", name)


def blocks_of(blocks: Sequence[Block], kind: BlockKind) -> list[Block]:
    """Those of one kind."""
    return [block for block in blocks if block.kind is kind]
