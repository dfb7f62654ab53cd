"""What was to be paid, by labels, arithmetic and position: receipts and invoices print many amounts called total."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from docmill.document_types import FieldSpec
from docmill.finding.amount_kinds import is_summary, kind_of_row
from docmill.finding.candidate import Candidate
from docmill.finding.continuation import goes_on
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.normalisation.money import FoundAmount, find_amounts, parse_money
from docmill.normalisation.text import comparison_form

_BEST = re.compile(r"grand|nett|nettotal|payable|due|after|rounded|tebetalen|topay|价税合计|应付|实付|应收")
_INCLUSIVE = re.compile(r"in[cd]l|inciu|inclus")
_SUM_KINDS = frozenset({"total", "subtotal", "tax", "cash", "change", "rounding"})
_CURRENCY_ONLY = re.compile(r"\W*(?:RM|MYR|USD|EUR|GBP|SGD|[$€£¥])\W*$", re.IGNORECASE)
WIDE_GAP = 0.2
"""Two texts of a row farther apart than this (of the page's width) are not one label."""

CENT = Decimal("0.01")
"""Sums may be off by so much: prices are rounded line by line."""


@dataclass(frozen=True, slots=True)
class AmountRow:
    """A row of print that ends in an amount."""

    kind: str
    label: str
    label_pieces: tuple[Piece, ...]
    piece: Piece
    amount: Decimal
    position: int
    height: float


def amounts_in(piece: Piece, currency: str | None) -> list[tuple[Piece, FoundAmount]]:
    """The amounts of a piece with a piece for each."""
    return [(piece.part(a.start, a.end), a) for a in find_amounts(piece.text, default_currency=currency)]


def _with_misread_points(row: Sequence[tuple[Piece, list[tuple[Piece, FoundAmount]]]], currency: str | None) -> None:
    """Take ``52-00`` or ``52:00`` at the end of a labelled row of totals for an amount."""
    last, held = row[-1]
    money = parse_money(last.text, default_currency=currency)
    if len(row) < 2 or (held and held[-1][1].decimals) or money is None or not money.amount.as_tuple().exponent:
        return
    if kind_of_row(" ".join(p.text for p, _ in row[:-1])) not in _SUM_KINDS:
        return
    held[:] = [(last, FoundAmount(money, 0, len(last.text), 2))]


def amount_rows(sheet: Sheet, currency: str | None) -> list[AmountRow]:
    """Labelled amounts from top to bottom; rows of a tax summary at the foot are left out.

    A row counts where its last amount has decimals, or a currency sign, or where no amount of the page has decimals.
    """
    rows = [[(p, amounts_in(p, currency)) for p in row] for row in sheet.rows]
    decimals = any(a.decimals for row in rows for _, held in row for _, a in held)
    found: list[AmountRow] = []
    in_summary = False
    for position, row in enumerate(rows):
        text = "".join(p.text for p, _ in row)
        if is_summary(text) and not any(a.decimals for _, held in row for _, a in held):
            in_summary = True
            continue
        _with_misread_points(row, currency)
        if in_summary:
            continue
        for pieces, part, amount in _stretches(row, decimals):
            label = _label_only(" ".join(p.text for p in pieces))
            value = amount.money.amount
            found.append(AmountRow(kind_of_row(label), label, pieces, part, value, position, part.box.height))
    return found


def _stretches(
    row: Sequence[tuple[Piece, list[tuple[Piece, FoundAmount]]]], decimals: bool
) -> list[tuple[tuple[Piece, ...], Piece, FoundAmount]]:
    """A row's labels, each with the last amount before the next label; ``Total Qty : 5`` is no label of an amount."""
    found: list[tuple[tuple[Piece, ...], Piece, FoundAmount]] = []
    labels: list[Piece] = []
    last: tuple[Piece, FoundAmount] | None = None
    for piece, held in row:
        usable = [(part, a) for part, a in held if a.decimals or not decimals]
        if not usable and re.search(r"[:：]\s*\d+$", piece.text):
            continue
        own = piece.part(0, usable[0][1].start) if usable and usable[0][1].start else None
        words = piece if not usable else own
        if words is not None and _CURRENCY_ONLY.match(words.text):
            words = None  # ``TOTAL   RM   12.30``
        if words is not None and sum(c.isalpha() for c in words.text) >= (4 if last is not None else 1):
            if last is not None:
                found.append((tuple(labels), *last))
                labels, last = [], None
            if labels and words.box.x0 - labels[-1].box.x1 > WIDE_GAP:
                labels = []  # a remark in another column
            labels.append(words)
        if usable:
            last = usable[-1]
    if last is not None:
        found.append((tuple(labels), *last))
    return found


def _label_only(text: str) -> str:
    """The words of a label without the numbers among them (``GST 6%``, ``Item Count 3``)."""
    return re.sub(r"@?\s?\d+([.,]\d+)?\s?%?", " ", text)


def find_totals(sheet: Sheet, fields: Sequence[FieldSpec], currency: str | None) -> dict[str, Candidate]:
    """The grand total, subtotal, tax and what surrounds them.

    Returns:
        Candidates by ``grand_total``, ``subtotal``, ``tax``, ``cash``, ``change``, ``rounding``, ``service``,
        ``saving``. A total that arithmetic alone gives carries the note ``computed``, and ``guessed`` where only its
        size and place speak for it.
    """
    aliases: dict[str, str] = {
        comparison_form(a): f.role for f in fields if f.role in ("grand_total", "subtotal", "tax") for a in f.aliases
    }
    rows = [_by_alias(row, aliases) for row in amount_rows(sheet, currency)]
    found: dict[str, Candidate] = {}
    for kind in ("subtotal", "tax", "cash", "change", "rounding", "service", "saving"):
        chosen = next((r for r in rows if r.kind == kind), None)
        if chosen is not None:
            found[kind] = Candidate(chosen.piece, 0.85, "amount_row", _label(chosen))
    total = _grand_total(rows, sheet)
    if total is not None:
        found["grand_total"] = total
        found.update(_parts_of_total(rows, total))
    return found


def _parts_of_total(rows: list[AmountRow], total: Candidate) -> dict[str, Candidate]:
    """The subtotal and tax that add up to the total, where several rows are called so."""
    money = parse_money(total.piece.text)
    if money is None:
        return {}
    others = [Decimal(0), *(r.amount for r in rows if r.kind in ("rounding", "service"))]
    for subtotal in reversed([r for r in rows if r.kind == "subtotal"]):
        for tax in (r for r in rows if r.kind == "tax"):
            if any(abs(subtotal.amount + tax.amount + o - abs(money.amount)) <= CENT for o in others):
                return {
                    "subtotal": Candidate(subtotal.piece, 0.97, "adds_up", _label(subtotal)),
                    "tax": Candidate(tax.piece, 0.97, "adds_up", _label(tax)),
                }
    return {}


def _by_alias(row: AmountRow, aliases: dict[str, str]) -> AmountRow:
    role = aliases.get(comparison_form(row.label))
    kind = {"grand_total": "total"}.get(role or "", role or row.kind)
    if row.kind in ("subtotal", "tax") and kind == "total":
        kind = row.kind
    return AmountRow(kind, row.label, row.label_pieces, row.piece, row.amount, row.position, row.height)


def _label(row: AmountRow) -> Piece | None:
    return joined(row.label_pieces, " ") if row.label_pieces else None


def _grand_total(rows: list[AmountRow], sheet: Sheet) -> Candidate | None:
    scores: dict[Decimal, float] = {}
    totals = [r for r in rows if r.kind == "total"]
    for row in totals:
        value = abs(row.amount)
        if value in scores:
            scores[value] = max(scores[value], _own_score(row, sheet)) + 0.08
        else:
            scores[value] = _own_score(row, sheet)
    expected = _expected(rows)
    for value, weight in expected.items():
        near = next((v for v in scores if abs(v - value) <= (0 if weight > 0.2 else CENT)), None)
        if near is not None:
            scores[near] += weight
    if scores:
        value = max(scores, key=lambda v: (scores[v], v))
        row = max((r for r in totals if abs(r.amount) == value), key=lambda r: _own_score(r, sheet))
        return Candidate(row.piece, min(scores[value], 1.0), "total_row", _label(row))
    return _unlabelled(rows, expected, sheet)


def _own_score(row: AmountRow, sheet: Sheet) -> float:
    form = comparison_form(row.label)
    score = 0.75
    if _BEST.search(form):
        score += 0.1
    if _INCLUSIVE.search(form):
        score += 0.06
    if form in {"total", "totalmyr", "totalrm", "grandtotal", "合计", "总计"}:
        score += 0.07
    if row.amount == 0:
        score -= 0.5
    if row.height > 1.3 * sheet.line_height:
        score += 0.04
    return score


def _expected(rows: list[AmountRow]) -> dict[Decimal, float]:
    """Totals that arithmetic over the other rows asks for, with the weight of each."""
    by_kind: dict[str, list[Decimal]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(abs(row.amount) if row.kind != "rounding" else row.amount)
    expected: dict[Decimal, float] = {}

    def expect(value: Decimal, weight: float) -> None:
        if value > 0:
            expected[value] = max(expected.get(value, 0), weight)

    changes = by_kind.get("change", [])
    for cash in by_kind.get("cash", []):
        for change in changes:
            expect(cash - change, 0.25)
        if not changes:
            expect(cash, 0.12)
    rounding = [r for r in by_kind.get("rounding", []) if r and abs(r) < Decimal("0.1")]
    for subtotal in by_kind.get("subtotal", []):
        for tax in by_kind.get("tax", [Decimal(0)]):
            for service in [Decimal(0), *by_kind.get("service", [])]:
                expect(subtotal + tax + service, 0.12)
                for amount in rounding:
                    expect(subtotal + tax + service + amount, 0.16)
    for total in by_kind.get("total", []):
        for amount in rounding:
            for signed in (amount, -amount):
                if any(abs(other - (total + signed)) == 0 for other in by_kind["total"]):
                    expect(total + amount, 0.2)
    return expected


def _has_decimals(amount: Decimal) -> bool:
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and exponent < 0


def _unlabelled(rows: list[AmountRow], expected: dict[Decimal, float], sheet: Sheet) -> Candidate | None:
    """A total without a total's label: arithmetic, else the largest amount before the payment."""
    for value in sorted(expected, key=lambda v: (-expected[v], -v)):
        printed = [r for r in rows if abs(r.amount) == value]
        if printed:
            return Candidate(printed[-1].piece, 0.6, "arithmetic", None, ("computed",))
    if goes_on(sheet):
        return None
    payment = next((r.position for r in rows if r.kind in ("cash", "change")), len(sheet.rows))
    open_rows = [
        r
        for r in rows
        if r.position < payment and r.kind in ("", "subtotal") and r.amount > 0 and _has_decimals(r.amount)
    ]
    if not open_rows:
        return None
    largest = max(open_rows, key=lambda r: (r.amount, r.position))
    return Candidate(largest.piece, 0.4, "largest_amount", None, ("guessed",))
