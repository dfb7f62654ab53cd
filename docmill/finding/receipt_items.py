"""Items of receipts that print no header over them: lines that end in an amount, up to the first sum."""

from __future__ import annotations

import re
from collections.abc import Sequence

from docmill.document_types import FieldSpec
from docmill.extraction import FieldKind
from docmill.finding.amount_kinds import kind_of_row
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.finding.tables import FoundTable
from docmill.finding.totals import amounts_in
from docmill.normalisation.dates import find_dates

_TIMES = re.compile(
    r"(?P<quantity>\d+(?:[.,]\d+)?)\s*(?:pcs?|pkts?|units?)?\s*[xX×@*]\s*(?P<price>(?:RM|[$€£¥])?\s?\d+[.,]\d{2})?"
)
_SUMS = frozenset({"total", "subtotal", "tax", "cash", "change", "rounding", "service"})
LEAST_ROWS = 1


def headless_items(sheet: Sheet, spec: FieldSpec) -> FoundTable | None:
    """Rows of ``description``, ``quantity``, ``unit_price`` and ``amount`` above the first sum of a receipt.

    None where the type's table has no columns of those names, or where no sum follows the rows.
    """
    names = [c.name for c in spec.columns]
    if "description" not in names or "amount" not in names:
        return None
    if next(c for c in spec.columns if c.name == "amount").kind is not FieldKind.MONEY:
        return None
    rows: list[dict[str, Piece]] = []
    waiting: list[Piece] = []
    used: set[int] = set()
    ended = False
    for row in sheet.rows:
        text = " ".join(p.text for p in row)
        amount = _last_amount(row)
        if amount is not None and kind_of_row(re.sub(r"[\d.,]+", " ", text)) in _SUMS:
            ended = True
            break
        if find_dates(text) or re.search(r"\d{1,2}:\d{2}|[:：]\s*\S", text):
            waiting = []
            continue
        rest = [p for p in row if amount is None or p.box.x1 < amount.box.x0 + 0.002 or p.index != amount.index]
        if amount is None:
            waiting = [*waiting[-1:], joined(list(row), " ")] if any(c.isalpha() for c in text) else waiting
            continue
        rows.append(_item(rest, amount, waiting))
        used.update(p.index for p in row)
        used.update(p.index for p in waiting[-1:] if rows[-1].get("description") is p)
        waiting = []
    if len(rows) < LEAST_ROWS or not ended:
        return None
    whole = tuple(tuple(row.get(name) for name in names) for row in rows)
    return FoundTable((), whole, frozenset(used), ruled=False)


def _last_amount(row: Sequence[Piece]) -> Piece | None:
    held = [part for part, found in amounts_in(row[-1], None) if found.decimals == 2]
    return held[-1] if held else None


def _item(rest: list[Piece], amount: Piece, waiting: list[Piece]) -> dict[str, Piece]:
    item = {"amount": amount}
    words = [p for p in rest if p.index != amount.index]
    for piece in list(words):
        times = _TIMES.search(piece.text)
        if times is None:
            continue
        item["quantity"] = piece.part(*times.span("quantity"))
        if times["price"]:
            item["unit_price"] = piece.part(*times.span("price"))
        words.remove(piece)
        if times.start() > 3:
            words.append(piece.part(0, times.start()))
    for piece in (p for p in words if p.box.x1 < amount.box.x0):
        if re.fullmatch(r"\d{1,3}", piece.text):
            item.setdefault("quantity", piece)
        elif re.fullmatch(r"(?:RM|[$€£¥])?\s?\d[\d,]*[.,]\d{2}", piece.text):
            item.setdefault("unit_price", piece)
    named = [p for p in words if sum(c.isalpha() for c in p.text) >= 2]
    if named:
        item["description"] = joined(named, " ")
    elif waiting:
        item["description"] = waiting[-1]
    return item
