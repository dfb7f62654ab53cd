"""Till receipts: three layouts, from a narrow thermal printer to a café's slip."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from docmill.synthesis import inventions
from docmill.synthesis.canvas import Canvas
from docmill.synthesis.inventions import cents, money
from docmill.truth import TableTruth

COLUMNS = {"description": "Description", "quantity": "Qty", "unit_price": "Price", "amount": "Amount"}


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a receipt."""

    description: str
    quantity: int
    unit_price: Decimal

    @property
    def amount(self) -> Decimal:
        """Quantity times price."""
        return self.quantity * self.unit_price


@dataclass(frozen=True, slots=True)
class Sale:
    """What one receipt says."""

    company: str
    address: tuple[str, str]
    phone: str
    tax_id: str
    receipt_no: str
    date: str
    time: str
    cashier: str
    items: tuple[Item, ...]
    tax_rate: int
    cash: Decimal

    @property
    def subtotal(self) -> Decimal:
        """Sum of the items."""
        return sum((item.amount for item in self.items), Decimal(0))

    @property
    def tax(self) -> Decimal:
        """Tax on top of the subtotal."""
        return cents(self.subtotal * self.tax_rate / 100)

    @property
    def total(self) -> Decimal:
        """What is to be paid."""
        return self.subtotal + self.tax


def _sale(rng: random.Random, seed: int) -> Sale:
    goods = rng.sample(inventions.GOODS, rng.randint(3, 8))
    items = tuple(Item(name, rng.choice((1, 1, 1, 2, 2, 3)), inventions.priced(rng, price)) for name, price in goods)
    rate = rng.choice((6, 8, 10, 20))
    due = sum((item.amount for item in items), Decimal(0))
    due += cents(due * rate / 100)
    note = rng.choice((5, 10, 20, 50))
    cash = (due // note + 1) * note
    return Sale(
        company=rng.choice(inventions.SHOPS),
        address=(inventions.street(rng), f"{inventions.postcode(rng)} {rng.choice(inventions.TOWNS)}"),
        phone=inventions.phone(rng),
        tax_id=f"AB{rng.randint(100000000, 999999999)}",
        receipt_no=inventions.number(seed),
        date=inventions.written_day(rng, inventions.day(rng)),
        time=f"{rng.randint(8, 20):02d}:{rng.randint(0, 59):02d}",
        cashier=rng.choice(inventions.FIRST_NAMES),
        items=items,
        tax_rate=rate,
        cash=Decimal(cash),
    )


def _pair(
    paper: Canvas, y: float, label: str, value: str, field: str, *, left: float, right: float, size: float = 9.5,
    bold: bool = False,
) -> None:  # fmt: skip
    """A label at the left edge and its value at the right one."""
    paper.text(left, y, label, size, bold=bold)
    paper.text(right, y, value, size, bold=bold, align="right", field=field)


def _labelled(paper: Canvas, x: float, y: float, label: str, value: str, field: str, size: float = 9) -> None:
    paper.text(x, y, f"{label} {value}", size, field=field, value=value)


def _item_table(paper: Canvas, sale: Sale, header: tuple[str, ...] | None) -> None:
    rows = tuple((i.description, str(i.quantity), money(i.unit_price), money(i.amount)) for i in sale.items)
    paper.tables.append(
        TableTruth("items", header or tuple(COLUMNS.values()), rows, paper.number, "items", tuple(COLUMNS))
    )


def _thermal(paper: Canvas, sale: Sale, rng: random.Random) -> float:
    """Everything centred, dashes between the parts, header over four columns."""
    middle, left, right = paper.width / 2, 16.0, paper.width - 16
    paper.text(middle, 22, sale.company, 12.5, bold=True, align="center", field="company")
    for index, line in enumerate(sale.address):
        paper.text(middle, 40 + index * 12, line, 9, align="center", field="address")
    _y = 66.0
    paper.text(middle, _y, f"Tel: {sale.phone}", 9, align="center", field="phone", value=sale.phone)
    paper.text(middle, _y + 12, f"GST No: {sale.tax_id}", 9, align="center", field="tax_id", value=sale.tax_id)
    paper.dashes(left, _y + 28, right)
    _labelled(paper, left, _y + 34, "Receipt No:", sale.receipt_no, "receipt_no")
    _labelled(paper, left, _y + 46, "Date:", sale.date, "date")
    paper.text(right, _y + 46, f"Time: {sale.time}", 9, align="right", field="time", value=sale.time)
    _labelled(paper, left, _y + 58, "Cashier:", sale.cashier, "cashier")
    paper.dashes(left, _y + 74, right)
    y = _y + 79
    columns = (left, right - 84, right - 44, right)
    for x, title, align in zip(
        columns, ("Item", "Qty", "Price", "Amount"), ("left", "right", "right", "right"), strict=True
    ):
        paper.text(x, y, title, 8.5, bold=True, align="left" if align == "left" else "right")
    for item in sale.items:
        y += 13
        paper.text(columns[0], y, item.description, 8.5)
        paper.text(columns[1], y, str(item.quantity), 8.5, align="right")
        paper.text(columns[2], y, money(item.unit_price), 8.5, align="right")
        paper.text(columns[3], y, money(item.amount), 8.5, align="right")
    _item_table(paper, sale, ("Item", "Qty", "Price", "Amount"))
    paper.dashes(left, y + 17, right)
    y += 22
    _pair(paper, y, rng.choice(("Subtotal", "Sub Total")), money(sale.subtotal), "subtotal", left=left, right=right)
    _pair(paper, y + 13, f"GST {sale.tax_rate}%", money(sale.tax), "tax", left=left, right=right)
    label = rng.choice(("TOTAL", "GRAND TOTAL", "TOTAL DUE"))
    _pair(paper, y + 29, label, money(sale.total), "total", left=left, right=right, size=13, bold=True)
    _pair(paper, y + 49, "Cash", money(sale.cash), "cash", left=left, right=right)
    _pair(paper, y + 62, "Change", money(sale.cash - sale.total), "change", left=left, right=right)
    paper.dashes(left, y + 79, right)
    paper.text(middle, y + 86, "Thank you, please come again", 9, align="center")
    return y + 116


def _market(paper: Canvas, sale: Sale, rng: random.Random) -> float:
    """Head at the left, each item on two lines: its name, then quantity @ price and the amount."""
    left, right = 20.0, paper.width - 20
    paper.text(left, 20, sale.company, 12, bold=True, field="company")
    paper.text(left, 37, ", ".join(sale.address), 8.5, field="address")
    paper.text(left, 49, f"Phone {sale.phone}", 8.5, field="phone", value=sale.phone)
    paper.text(left, 61, f"VAT No {sale.tax_id}", 8.5, field="tax_id", value=sale.tax_id)
    paper.rule(left, 76, right, 76, thickness=1.2)
    paper.text(left, 81, f"{sale.date}", 9, field="date")
    paper.text(right, 81, sale.time, 9, align="right", field="time")
    _labelled(paper, left, 93, "Bill No:", sale.receipt_no, "receipt_no")
    y = 112.0
    for item in sale.items:
        paper.text(left, y, item.description, 9.5)
        y += 12
        paper.text(left + 14, y, f"{item.quantity} @ {money(item.unit_price)}", 9)
        paper.text(right, y, money(item.amount), 9.5, align="right")
        y += 14
    _item_table(paper, sale, None)
    paper.rule(left, y + 2, right, y + 2)
    _pair(paper, y + 6, "Subtotal", money(sale.subtotal), "subtotal", left=left, right=right)
    _pair(paper, y + 19, f"VAT {sale.tax_rate}%", money(sale.tax), "tax", left=left, right=right)
    paper.rule(left, y + 34, right, y + 34)
    label = rng.choice(("Total", "Amount due", "Total payable"))
    _pair(paper, y + 38, label, money(sale.total), "total", left=left, right=right, size=12.5, bold=True)
    _pair(paper, y + 57, "Cash", money(sale.cash), "cash", left=left, right=right)
    _pair(paper, y + 70, "Change due", money(sale.cash - sale.total), "change", left=left, right=right)
    count = sum(item.quantity for item in sale.items)
    paper.text(left, y + 90, f"{count} items. Served by {sale.cashier}", 8.5, field="cashier", value=sale.cashier)
    _barcode(paper, rng, left + 20, y + 108, right - 20, 22)
    return y + 152


def _cafe(paper: Canvas, sale: Sale, rng: random.Random) -> float:
    """A framed head and a ruled table."""
    middle, left, right = paper.width / 2, 16.0, paper.width - 16
    paper.frame(left, 16, right, 74, thickness=1.1)
    paper.text(middle, 23, sale.company, 12, bold=True, align="center", field="company")
    paper.text(middle, 41, sale.address[0] + ",", 9, align="center", field="address")
    paper.text(middle, 54, sale.address[1], 9, align="center", field="address")
    paper.text(middle, 82, "RECEIPT", 11, bold=True, align="center")
    _labelled(paper, left, 100, "Check No.", sale.receipt_no, "receipt_no")
    paper.text(right, 100, f"Date {sale.date}", 9, align="right", field="date", value=sale.date)
    _labelled(paper, left, 113, "Served by", sale.cashier, "cashier")
    y, columns = 131.0, (left, left + 24, right - 46, right)
    for top in (y, y + 16):
        paper.rule(left, top, right, top, thickness=0.9)
    paper.text(columns[0] + 4, y + 3, "Qty", 8.5, bold=True)
    paper.text(columns[1] + 4, y + 3, "Description", 8.5, bold=True)
    paper.text(columns[3] - 4, y + 3, "Amount", 8.5, bold=True, align="right")
    first = y
    for item in sale.items:
        y += 16
        paper.text(columns[0] + 8, y + 3, str(item.quantity), 9)
        paper.text(columns[1] + 4, y + 3, item.description, 9)
        paper.text(columns[3] - 4, y + 3, money(item.amount), 9, align="right")
        paper.rule(left, y + 16, right, y + 16)
    for x in columns:
        paper.rule(x, first, x, y + 16)
    rows = tuple((str(i.quantity), i.description, money(i.amount)) for i in sale.items)
    names = ("quantity", "description", "amount")
    paper.tables.append(TableTruth("items", ("Qty", "Description", "Amount"), rows, 1, "items", names))
    y += 22
    _pair(paper, y, "Net amount", money(sale.subtotal), "subtotal", left=middle - 20, right=right - 4)
    _pair(paper, y + 13, f"Tax {sale.tax_rate}%", money(sale.tax), "tax", left=middle - 20, right=right - 4)
    _pair(paper, y + 28, "Total", money(sale.total), "total", left=middle - 20, right=right - 4, size=12, bold=True)
    _pair(paper, y + 46, "Cash", money(sale.cash), "cash", left=middle - 20, right=right - 4)
    _pair(paper, y + 59, "Change", money(sale.cash - sale.total), "change", left=middle - 20, right=right - 4)
    paper.text(middle, y + 84, rng.choice(("We hope to see you soon", "Have a lovely day")), 9, align="center")
    return y + 112


def _barcode(paper: Canvas, rng: random.Random, x0: float, y: float, x1: float, height: float) -> None:
    x = x0
    while x < x1:
        thick = rng.choice((0.6, 0.6, 1.2, 1.8))
        paper.rule(x, y, x, y + height, thickness=thick, colour=(10, 10, 10))
        x += thick + rng.choice((0.8, 1.4, 2.0))


LAYOUTS: tuple[Callable[[Canvas, Sale, random.Random], float], ...] = (_thermal, _market, _cafe)


def draw_receipt(rng: random.Random, seed: int, *, dpi: int, font: str | None) -> list[Canvas]:
    """One receipt of 80 mm paper, as long as it needs to be."""
    paper = Canvas(236, 720, dpi=dpi, font=font)
    sale = _sale(rng, seed)
    layout = LAYOUTS[seed % len(LAYOUTS)]
    paper.cut(layout(paper, sale, rng))
    return [paper]
