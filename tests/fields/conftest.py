"""Pages made by hand: text placed by fractions, the way the OCR reports it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from docmill.extraction import Cell, Grid, Line, Mark, PageText, Word
from docmill.geometry import Box

CHAR = 0.011
HEIGHT = 0.014


@dataclass
class Page:
    """Collects what stands on a page; ``text`` and ``mark`` and ``grid`` return the page, to be chained."""

    lines: list[Line] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    scribbles: tuple[Box, ...] | None = None

    def text(self, x: float, y: float, text: str, *, height: float = HEIGHT, confidence: float = 0.99) -> "Page":
        """One line whose left edge is at x and whose middle is at y."""
        wide = sum(2 if ord(c) > 0x2E80 else 1 for c in text)
        scale = CHAR * height / HEIGHT
        box = Box.clipped(x, y - height / 2, x + wide * scale, y + height / 2)
        words, at = [], x
        for word in text.split(" "):
            width = sum(2 if ord(c) > 0x2E80 else 1 for c in word) * scale
            if word:
                words.append(Word(word, Box.clipped(at, box.y0, at + width, box.y1), confidence))
            at += width + scale
        self.lines.append(Line(text, box, confidence, tuple(words)))
        return self

    def row(self, y: float, *placed: tuple[float, str]) -> "Page":
        """Several lines at one height."""
        for x, text in placed:
            self.text(x, y, text)
        return self

    def mark(self, x: float, y: float, checked: bool) -> "Page":
        """A check box with its middle at (x, y)."""
        box = Box.clipped(x - 0.008, y - 0.006, x + 0.008, y + 0.006)
        self.marks.append(Mark(box, checked, 0.4 if checked else 0.02, 0.95))
        return self

    def grid(self, xs: list[float], ys: list[float]) -> "Page":
        """A ruled table with lines at xs and ys."""
        cells = tuple(
            Cell(Box(xs[c], ys[r], xs[c + 1], ys[r + 1]), r, c) for r in range(len(ys) - 1) for c in range(len(xs) - 1)
        )
        self.grids.append(Grid(Box(xs[0], ys[0], xs[-1], ys[-1]), cells))
        return self

    def scribble(self, x: float, y: float, width: float = 0.15, height: float = 0.03) -> "Page":
        """Handwriting that was not read, with its left edge at x and its middle at y."""
        box = Box.clipped(x, y - height / 2, x + width, y + height / 2)
        self.scribbles = (*(self.scribbles or ()), box)
        return self

    def read(self, **how: float) -> PageText:
        """The page as the reader hands it on."""
        return PageText(
            tuple(self.lines),
            tuple(self.marks),
            tuple(self.grids),
            width=1000,
            height=1400,
            scribbles=self.scribbles,
            **how,  # type: ignore[arg-type]
        )


@pytest.fixture
def blank() -> Callable[[], Page]:
    return Page


@pytest.fixture
def receipt() -> Page:
    """A receipt with everything: head, items, totals, payment, tax summary."""
    return (
        Page()
        .text(0.30, 0.05, "KEDAI ANEKA SDN BHD", height=0.02)
        .text(0.34, 0.075, "(1234567-X)")
        .text(0.28, 0.10, "No 12, Jalan Melati 3/4,")
        .text(0.26, 0.12, "Taman Bunga, 43200 Cheras,")
        .text(0.36, 0.14, "Selangor.")
        .text(0.32, 0.16, "TEL: 03-1234 5678")
        .text(0.30, 0.18, "GST ID: 000123456789")
        .text(0.36, 0.21, "TAX INVOICE")
        .row(0.25, (0.05, "Receipt No: R-00417"), (0.60, "Date: 16/05/2019 09:41"))
        .row(0.28, (0.05, "Description"), (0.45, "Qty"), (0.58, "Price"), (0.75, "Amount"))
        .row(0.30, (0.05, "Kopi O"), (0.46, "2"), (0.58, "2.20"), (0.76, "4.40"))
        .row(0.32, (0.05, "Roti Bakar"), (0.46, "1"), (0.58, "3.10"), (0.76, "3.10"))
        .row(0.36, (0.05, "Total Qty : 3"))
        .row(0.38, (0.05, "Sub Total"), (0.76, "7.50"))
        .row(0.40, (0.05, "GST 6%"), (0.76, "0.45"))
        .row(0.42, (0.05, "Rounding Adj"), (0.76, "0.00"))
        .row(0.44, (0.05, "Total Sales (Inclusive of GST)"), (0.76, "7.95"))
        .row(0.46, (0.05, "CASH"), (0.75, "10.00"))
        .row(0.48, (0.05, "CHANGE"), (0.76, "2.05"))
        .row(0.52, (0.05, "GST Summary"), (0.40, "Amount(RM)"), (0.70, "Tax(RM)"))
        .row(0.54, (0.05, "SR @ 6%"), (0.42, "7.50"), (0.72, "0.45"))
        .row(0.56, (0.05, "Total"), (0.42, "7.50"), (0.72, "0.45"))
        .text(0.30, 0.60, "THANK YOU PLEASE COME AGAIN")
    )
