"""Made documents with exact truth."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from PIL import Image

from docmill.geometry import Box
from docmill.synthesis.applications import draw_application
from docmill.synthesis.canvas import Canvas
from docmill.synthesis.invoices import draw_invoice
from docmill.synthesis.receipts import draw_receipt
from docmill.synthesis.scanning import CLEAN, Move, Scan, scan
from docmill.truth import DocumentTruth, FieldTruth, LineTruth


class Kind(StrEnum):
    """What can be made; the names are those of the document types."""

    RECEIPT = "receipt"
    INVOICE = "invoice"
    APPLICATION_FORM = "application_form"


MOST_PAGES = {Kind.RECEIPT: 1, Kind.INVOICE: 50, Kind.APPLICATION_FORM: 2}


@dataclass(frozen=True, slots=True)
class SynthDocument:
    """Pages (mode RGB, L or 1) and all that stands on them. ``truth.file`` is empty until it is written."""

    pages: tuple[Image.Image, ...]
    truth: DocumentTruth


def make_document(
    kind: Kind | str,
    seed: int,
    *,
    dpi: int = 150,
    how: Scan = CLEAN,
    pages: int | None = None,
    font: str | None = None,
) -> SynthDocument:
    """Make one document. Documents of one kind with different seeds (0 to 999,999) carry different numbers.

    Args:
        kind: what to make.
        seed: decides everything about it.
        dpi: pixels per inch.
        how: what the scanner does to it; as drawn where left out.
        pages: how many pages it is to have; what the seed gives where left out.
        font: file of a TrueType font; the one that comes with Pillow where left out.

    Raises:
        ValueError: the kind is none of :class:`Kind`, or ``seed`` or ``pages`` is out of range.
    """
    kind = Kind(kind)
    if not 0 <= seed < 1_000_000:
        raise ValueError(f"seed is 0 to 999999, not {seed}")
    most = MOST_PAGES[kind]
    if pages is not None and not 1 <= pages <= most:
        raise ValueError(f"a {kind.value} has 1 to {most} pages, not {pages}")
    rng = random.Random(f"{kind.value}-{seed}")
    papers: list[Canvas]
    if kind is Kind.RECEIPT:
        papers = draw_receipt(rng, seed, dpi=dpi, font=font)
    elif kind is Kind.INVOICE:
        papers = draw_invoice(rng, seed, dpi=dpi, font=font, pages=pages)
    else:
        papers = draw_application(rng, seed, dpi=dpi, font=font, pages=pages)
    scanned = [scan(paper.image, seed * 64 + paper.number, how) for paper in papers]
    truth = _truth(kind, papers, [move for _, move in scanned])
    return SynthDocument(tuple(image for image, _ in scanned), truth)


def _truth(kind: Kind, papers: list[Canvas], moves: list[Move]) -> DocumentTruth:
    fields: dict[str, FieldTruth] = {}
    for paper, move in zip(papers, moves, strict=True):
        for name, parts in paper.fields.items():
            fields.setdefault(name, _joined(parts, move))
    return DocumentTruth(
        file="",
        document_type=kind.value,
        pages=len(papers),
        fields=fields,
        checkboxes=tuple(
            replace(box, box=None if box.box is None else move(box.box))
            for paper, move in zip(papers, moves, strict=True)
            for box in paper.checkboxes
        ),
        tables=tuple(table for paper in papers for table in paper.tables),
        page_truths=tuple(
            replace(
                paper.page_truth(), lines=tuple(LineTruth(line.text, move(line.box)) for line in _in_rows(paper.lines))
            )
            for paper, move in zip(papers, moves, strict=True)
        ),
    )


def _joined(parts: list[FieldTruth], move: Move) -> FieldTruth:
    """One value out of the lines it is printed on: a blank between them, nothing that is not printed."""
    text = " ".join(part.text for part in parts)
    boxes = [part.box for part in parts if part.box is not None]
    return FieldTruth(text, move(Box.around(boxes)) if boxes else None, parts[0].page)


def _in_rows(lines: Iterable[LineTruth]) -> list[LineTruth]:
    """As they are read: from top to bottom, those on one height from left to right."""
    rows: list[list[LineTruth]] = []
    for line in sorted(lines, key=lambda line: line.box.center[1]):
        if rows and rows[-1][0].box.vertical_overlap(line.box) > 0.5:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda line: line.box.x0)]
