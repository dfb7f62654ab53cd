"""Rows of print that head the columns of a document type's table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from docmill.document_types import FieldSpec
from docmill.finding.amount_kinds import is_summary
from docmill.finding.sheet import Piece, Sheet
from docmill.normalisation.text import comparison_form, lookalike_form


def header_rows(sheet: Sheet, columns: Sequence[FieldSpec]) -> list[tuple[int, dict[str, Piece]]]:
    """Rows of the page that name at least two of a table's columns, the best first: row number, column → header."""
    found = []
    for number, row in enumerate(sheet.rows):
        if any(is_summary("".join(p.text for p in r)) for r in sheet.rows[max(number - 1, 0) : number + 1]):
            continue
        named = _named_columns(row, columns)
        if sum(not name.startswith("?") for name in named) >= 2:
            found.append((number, named))
    return sorted(found, key=lambda f: (-sum(not name.startswith("?") for name in f[1]), f[0]))


def _named_columns(row: Sequence[Piece], columns: Sequence[FieldSpec]) -> dict[str, Piece]:
    """Column → the piece of the row that heads it; heads that fit one column alone choose first.

    Heads that are no column of the type are there too, as ``?0``, ``?1``: what stands under them is no other's.
    """
    heads = [part for p in row for part in _heads(p, columns)]
    fitting: list[tuple[Piece, list[str]]] = []
    for piece in heads:
        form = comparison_form(re.sub(r"\((rm|myr|usd|eur|\$)\)", "", piece.text, flags=re.IGNORECASE))
        scores = {c.name: max((head_likeness(form, alias) for alias in c.aliases), default=0.0) for c in columns}
        best = max(scores.values(), default=0.0)
        if best >= 85 or (best >= 75 and len(form) >= 6):
            fitting.append((piece, [name for name, score in scores.items() if score == best]))
    named: dict[str, Piece] = {}
    for piece, names in sorted(fitting, key=lambda f: len(f[1])):
        free = next((name for name in names if name not in named), None)
        if free is not None:
            named[free] = piece
    if len(named) >= 2:
        others = [p for p in heads if all(p is not held for held in named.values())]
        named |= {f"?{number}": piece for number, piece in enumerate(others)}
    return named


def head_likeness(form: str, alias: str) -> float:
    """0 to 100; letters that OCR confuses (``Unlt``) count a little less than the right ones."""
    known = comparison_form(alias)
    if len(known) >= 4 and lookalike_form(form) == lookalike_form(alias):
        return max(90.0, fuzz.ratio(form, known))
    return fuzz.ratio(form, known)


def _heads(piece: Piece, columns: Sequence[FieldSpec]) -> list[Piece]:
    """A header piece, cut where the OCR ran several heads together (``Qty U/Price``, ``Amount Tax``)."""
    forms = {comparison_form(a) for c in columns for a in c.aliases}
    if comparison_form(piece.text) in forms or " " not in piece.text:
        return [piece]
    words = piece.text.split(" ")
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word) + 1)
    cuts: list[Piece] = []
    known = at = unknown = 0
    while at < len(words):
        end = next((e for e in range(len(words), at, -1) if comparison_form("".join(words[at:e])) in forms), None)
        if end is None:
            at += 1
            continue
        if unknown < at:
            cuts.append(piece.part(starts[unknown], starts[at] - 1))
        cuts.append(piece.part(starts[at], starts[end] - 1))
        known += 1
        at = unknown = end
    if unknown < len(words):
        cuts.append(piece.part(starts[unknown]))
    return cuts if known and len(cuts) > 1 else [piece]
