"""The laid-out pieces of a page, for showing and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from docmill.extraction import Block, BlockKind
from docmill.finding.checkboxes import CheckBox
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.finding.tables import FoundTable

TITLE_HEIGHT = 1.5
"""A line so many times higher than the median is a title."""


def page_blocks(sheet: Sheet, tables: Sequence[FoundTable], boxes: Sequence[CheckBox]) -> tuple[Block, ...]:
    """Tables, check boxes, and the text between them, in reading order."""
    placed: list[tuple[int, Block]] = []
    used: set[int] = set()
    for table in tables:
        used |= table.used
        pieces = table.pieces
        confidence = sum(p.confidence for p in pieces) / len(pieces)
        text = "\n".join(" | ".join(row) for row in (table.data.header, *table.data.rows))
        placed.append((min(table.used), Block(BlockKind.TABLE, text, table.place, confidence, table.data)))
    for box in boxes:
        index = box.label.index if box.label is not None else 0
        state = "[x]" if box.checked else "[ ]"
        placed.append((index, Block(BlockKind.CHECKBOX, f"{state} {box.name}".strip(), box.place, box.confidence)))
        used |= {p.index for p in (box.label, box.question) if p is not None}
    for paragraph in _paragraphs(sheet, used):
        whole = joined(paragraph, "\n")
        high = paragraph[0].box.height > TITLE_HEIGHT * sheet.line_height and len(paragraph) == 1
        kind = BlockKind.TITLE if high and len(whole.text) < 80 else BlockKind.TEXT
        placed.append((paragraph[0].index, Block(kind, whole.text, whole.place, whole.confidence)))
    return tuple(block for _, block in sorted(placed, key=lambda p: p[0]))


def _paragraphs(sheet: Sheet, used: set[int]) -> list[list[Piece]]:
    """Lines that follow one another closely in one column."""
    found: list[list[Piece]] = []
    for piece in sheet.pieces:
        if piece.index in used:
            continue
        last = found[-1][-1] if found else None
        close = (
            last is not None
            and last.index == piece.index - 1
            and 0 <= piece.box.y0 - last.box.y1 + 0.4 * sheet.line_height < 1.2 * sheet.line_height
            and piece.box.horizontal_overlap(last.box) > 0.5
            and abs(piece.box.height - last.box.height) < 0.5 * sheet.line_height
        )
        if close:
            found[-1].append(piece)
        else:
            found.append([piece])
    return found
