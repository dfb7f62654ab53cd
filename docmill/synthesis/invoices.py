"""Invoices on A4: three layouts, one to three pages."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from docmill.synthesis import inventions
from docmill.synthesis.canvas import FAINT, WHITE, Canvas
from docmill.synthesis.inventions import cents, money
from docmill.truth import TableTruth

A4 = (595.0, 842.0)
COLUMNS = ("code", "description", "quantity", "unit", "unit_price", "amount")
BAND = (226, 231, 238)


@dataclass(frozen=True, slots=True)
class Position:
    """One line of an invoice."""

    code: str
    description: str
    quantity: int
    unit: str
    unit_price: Decimal

    @property
    def amount(self) -> Decimal:
        """Quantity times price."""
        return self.quantity * self.unit_price

    @property
    def cells(self) -> tuple[str, ...]:
        """As printed, in the order of COLUMNS."""
        return (
            self.code,
            self.description,
            str(self.quantity),
            self.unit,
            money(self.unit_price),
            money(self.amount),
        )


@dataclass(frozen=True, slots=True)
class Bill:
    """What one invoice says."""

    issuer: str
    issuer_address: tuple[str, str]
    customer: str
    customer_address: tuple[str, str]
    invoice_no: str
    date: str
    due_date: str
    purchase_order: str
    payment_terms: str
    vat_id: str
    iban: str
    currency: str
    tax_rate: int
    positions: tuple[Position, ...]

    @property
    def subtotal(self) -> Decimal:
        """Sum of the positions."""
        return sum((p.amount for p in self.positions), Decimal(0))

    @property
    def tax(self) -> Decimal:
        """Tax on top of it."""
        return cents(self.subtotal * self.tax_rate / 100)


def _bill(rng: random.Random, seed: int, count: int) -> Bill:
    issued, days = inventions.day(rng), rng.choice((14, 30, 45))
    way = rng.choice(("%d/%m/%Y", "%d %B %Y", "%Y-%m-%d"))
    issuer, customer = rng.sample(inventions.FIRMS, 2)
    wares = [rng.choice(inventions.WARES) for _ in range(count)] if count > 12 else rng.sample(inventions.WARES, count)
    return Bill(
        issuer=issuer,
        issuer_address=(inventions.street(rng), f"{inventions.postcode(rng)} {rng.choice(inventions.TOWNS)}"),
        customer=customer,
        customer_address=(inventions.street(rng), f"{inventions.postcode(rng)} {rng.choice(inventions.TOWNS)}"),
        invoice_no=f"{rng.choice(('INV', 'RE', 'F'))}-{issued.year}-{inventions.number(seed)}",
        date=issued.strftime(way),
        due_date=(issued + timedelta(days=days)).strftime(way),
        purchase_order=f"PO{rng.randint(10000, 99999)}",
        payment_terms=f"{days} days net",
        vat_id=f"XV{rng.randint(100000000, 999999999)}",
        iban=f"XX{rng.randint(10, 99)} {rng.randint(1000, 9999)} {rng.randint(1000, 9999)} {rng.randint(1000, 9999)}",
        currency=rng.choice(("EUR", "USD", "GBP")),
        tax_rate=rng.choice((7, 19, 20)),
        positions=tuple(
            Position(code, name, rng.randint(1, 12), unit, inventions.priced(rng, price))
            for code, name, unit, price in wares
        ),
    )


def _table(
    paper: Canvas, top: float, positions: Sequence[Position], widths: Sequence[float], titles: Sequence[str], *,
    grid: bool, striped: bool,
) -> float:  # fmt: skip
    """Draw the table and return the y below it."""
    left, height = 48.0, 20.0
    edges = [left]
    for width in widths:
        edges.append(edges[-1] + width)
    right = edges[-1]
    paper.frame(left, top, right, top + height, fill=BAND, thickness=0.7 if grid else 0)
    rights = {2, 4, 5}

    def cells(y: float, texts: Sequence[str], *, bold: bool) -> None:
        for index, text in enumerate(texts):
            if index in rights:
                paper.text(edges[index + 1] - 5, y + 5, text, 9, align="right", bold=bold)
            else:
                paper.text(edges[index] + 5, y + 5, text, 9, bold=bold)

    cells(top, titles, bold=True)
    y = top + height
    for index, position in enumerate(positions):
        if striped and index % 2:
            paper.frame(left, y, right, y + height, fill=(245, 247, 250), thickness=0)
        cells(y, position.cells, bold=False)
        if grid:
            paper.frame(left, y, right, y + height, thickness=0.7)
        else:
            paper.rule(left, y + height, right, y + height, thickness=0.5, colour=(150, 150, 158))
        y += height
    if grid:
        for x in edges[1:-1]:
            paper.rule(x, top, x, y, thickness=0.7)
    rows = tuple(p.cells for p in positions)
    paper.tables.append(TableTruth("items", tuple(titles), rows, paper.number, "items", COLUMNS))
    return y


def _totals(paper: Canvas, y: float, bill: Bill, labels: tuple[str, str, str], *, boxed: bool) -> float:
    left, right = 360.0, 547.0
    if boxed:
        paper.frame(left - 8, y - 6, right, y + 60, thickness=0.8)
    paper.text(left, y, labels[0], 9.5)
    paper.text(right - 5, y, money(bill.subtotal), 9.5, align="right", field="subtotal")
    paper.text(left, y + 17, f"{labels[1]} {bill.tax_rate}%", 9.5)
    paper.text(right - 5, y + 17, money(bill.tax), 9.5, align="right", field="tax")
    paper.rule(left - 8, y + 33, right, y + 33, thickness=0.9)
    paper.text(left, y + 39, labels[2], 11, bold=True)
    total = money(bill.subtotal + bill.tax)
    printed = f"{bill.currency} {total}"
    paper.text(right - 5, y + 39, printed, 11, bold=True, align="right", field="total", value=total)
    return y + 70


def _foot(paper: Canvas, bill: Bill, page: int, pages: int) -> None:
    paper.rule(48, 784, 547, 784, thickness=0.5, colour=(150, 150, 158))
    paper.text(48, 790, f"{bill.issuer}", 8, colour=FAINT)
    if pages > 1:
        paper.text(547, 790, f"Page {page} of {pages}", 8, align="right", colour=FAINT)


def _classic(paper: Canvas, bill: Bill) -> float:
    """Issuer left, title and particulars right, customer below."""
    paper.text(48, 48, bill.issuer, 15, bold=True, field="issuer")
    for index, line in enumerate(bill.issuer_address):
        paper.text(48, 69 + index * 13, line, 9.5, field="issuer_address")
    paper.text(48, 95, f"VAT No: {bill.vat_id}", 9.5, field="vat_id", value=bill.vat_id)
    paper.text(547, 46, "INVOICE", 22, bold=True, align="right")
    pairs = (
        ("Invoice No:", bill.invoice_no, "invoice_no"),
        ("Invoice Date:", bill.date, "date"),
        ("Due Date:", bill.due_date, "due_date"),
        ("PO Number:", bill.purchase_order, "purchase_order"),
        ("Currency:", bill.currency, "currency"),
    )
    for index, (label, value, field) in enumerate(pairs):
        paper.text(360, 140 + index * 16, label, 9.5)
        paper.text(547, 140 + index * 16, value, 9.5, align="right", field=field)
    paper.text(48, 140, "Bill To:", 9.5, bold=True)
    paper.text(48, 155, bill.customer, 10.5, field="customer")
    for index, line in enumerate(bill.customer_address):
        paper.text(48, 170 + index * 13, line, 9.5, field="customer_address")
    return 246


def _banded(paper: Canvas, bill: Bill) -> float:
    """A dark band with the title, then four boxes with a label above each value."""
    paper.frame(0, 0, A4[0], 70, fill=(38, 58, 84), thickness=0)
    paper.text(48, 22, "TAX INVOICE", 20, bold=True, colour=WHITE)
    paper.text(547, 27, bill.issuer, 12, bold=True, align="right", colour=WHITE, field="issuer")
    paper.text(547, 82, ", ".join(bill.issuer_address), 9, align="right", field="issuer_address")
    boxes = (
        ("Invoice Number", bill.invoice_no, "invoice_no"),
        ("Date of Issue", bill.date, "date"),
        ("Payment Due", bill.due_date, "due_date"),
        ("Your Order", bill.purchase_order, "purchase_order"),
    )
    for index, (label, value, field) in enumerate(boxes):
        x = 48 + index * 124.75
        paper.frame(x, 112, x + 124.75, 150, thickness=0.8)
        paper.text(x + 6, 117, label, 8, colour=FAINT)
        paper.text(x + 6, 131, value, 10, field=field)
    paper.text(48, 166, "Invoice to", 9, bold=True)
    paper.text(48, 181, bill.customer, 10.5, field="customer")
    paper.text(48, 196, ", ".join(bill.customer_address), 9.5, field="customer_address")
    paper.text(360, 166, f"VAT ID: {bill.vat_id}", 9.5, field="vat_id", value=bill.vat_id)
    paper.text(360, 181, f"Currency: {bill.currency}", 9.5, field="currency", value=bill.currency)
    return 226


def _letter(paper: Canvas, bill: Bill) -> float:
    """A letter: issuer centred at the head, the customer in the window, particulars in one line each."""
    paper.text(A4[0] / 2, 40, bill.issuer, 16, bold=True, align="center", field="issuer")
    paper.text(A4[0] / 2, 61, ", ".join(bill.issuer_address), 9.5, align="center", field="issuer_address")
    paper.rule(48, 80, 547, 80, thickness=1.2)
    paper.text(48, 112, "Customer:", 9.5)
    paper.text(48, 127, bill.customer, 10.5, field="customer")
    for index, line in enumerate(bill.customer_address):
        paper.text(48, 142 + index * 13, line, 9.5, field="customer_address")
    paper.text(48, 188, f"Invoice No. {bill.invoice_no}", 13, bold=True, field="invoice_no", value=bill.invoice_no)
    rows = (
        (360, 112, "Date:", bill.date, "date"),
        (360, 127, "Due date:", bill.due_date, "due_date"),
        (360, 142, "Order No:", bill.purchase_order, "purchase_order"),
        (360, 157, "Terms:", bill.payment_terms, "payment_terms"),
    )
    for x, y, label, value, field in rows:
        paper.text(x, y, label, 9.5)
        paper.text(x + 70, y, value, 9.5, field=field)
    return 222


@dataclass(frozen=True, slots=True)
class Layout:
    """How an invoice looks: its head, the table's titles and widths (points), the labels of the totals."""

    head: Callable[[Canvas, Bill], float]
    titles: tuple[str, ...]
    totals: tuple[str, str, str]
    widths: tuple[float, ...] = (62, 191, 42, 42, 76, 86)
    grid: bool = True
    striped: bool = False


LAYOUTS = (
    Layout(_classic, ("Code", "Description", "Qty", "Unit", "Unit Price", "Amount"), ("Subtotal", "VAT", "Total")),
    Layout(
        _banded,
        ("Item No", "Details", "Qty", "Unit", "Price", "Line Total"),
        ("Net amount", "VAT", "Amount due"),
        grid=False,
        striped=True,
    ),
    Layout(
        _letter,
        ("Article", "Description", "Quantity", "Unit", "Rate", "Total"),
        ("Net total", "Tax", "Invoice total"),
        widths=(62, 176, 54, 44, 77, 86),
        grid=False,
    ),
)


def draw_invoice(
    rng: random.Random, seed: int, *, dpi: int, font: str | None, pages: int | None = None
) -> list[Canvas]:
    """One invoice; ``pages`` of it, or mostly one where it is left out."""
    wanted = pages or rng.choices((1, 2), (4, 1))[0]
    layout = LAYOUTS[seed % len(LAYOUTS)]
    first, following = 17, 30
    count = rng.randint(3, 9) if wanted == 1 else first + following * (wanted - 2) + rng.randint(4, 12)
    bill = _bill(rng, seed, count)
    left = list(bill.positions)
    papers: list[Canvas] = []
    for page in range(1, wanted + 1):
        paper = Canvas(*A4, dpi=dpi, font=font, number=page)
        if page == 1:
            top = layout.head(paper, bill)
        else:
            paper.text(48, 44, f"{bill.issuer}, invoice {bill.invoice_no}, continued", 9.5)
            top = 70.0
        taken = left[: first if page == 1 else following]
        left = left[len(taken) :]
        y = _table(paper, top, taken, layout.widths, layout.titles, grid=layout.grid, striped=layout.striped)
        if page == wanted:
            y = _totals(paper, y + 18, bill, layout.totals, boxed=layout.grid)
            paper.text(48, y + 8, f"IBAN: {bill.iban}", 9.5, field="iban", value=bill.iban)
            if "payment_terms" not in papers_fields([*papers, paper]):
                terms = f"Payment terms: {bill.payment_terms}"
                paper.text(48, y + 23, terms, 9.5, field="payment_terms", value=bill.payment_terms)
            paper.text(48, y + 46, "Thank you for your business.", 9.5, colour=FAINT)
        _foot(paper, bill, page, wanted)
        papers.append(paper)
    return papers


def papers_fields(papers: Sequence[Canvas]) -> set[str]:
    """Names of the fields that stand on any of the pages."""
    return {name for paper in papers for name in paper.fields}
