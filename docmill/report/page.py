"""The report as HTML: no resource from outside, every value escaped."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from docmill.extraction import Block, BlockKind
from docmill.report.data import ReportData, ReportDocument, ReportPage
from docmill.report.values import Mark, Table, Tick, blocks_of, tables_of, tick_of

_FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class _PageView:
    """A page ready for the template."""

    page: ReportPage
    picture: str
    marks: tuple[Mark, ...]
    values: tuple[Mark, ...]
    tables: tuple[Table, ...]
    found_tables: tuple[Block, ...]
    checkboxes: tuple[Tick, ...]
    text: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class _DocumentView:
    """A document ready for the template; ``state`` is ``failed``, ``review`` or ``fine``."""

    id: str
    document: ReportDocument
    state: str
    pages: tuple[_PageView, ...]


def render_report(report: ReportData) -> str:
    """One HTML document that shows everything in ``report`` and loads nothing.

    It can be read without a mouse and without scripts, on a phone, in the dark and on paper. The only script in it is
    the one whose hash its content security policy names.
    """
    documents = tuple(_document(number, document) for number, document in enumerate(report.documents, 1))
    script = (_FOLDER / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    states = Counter(view.state for view in documents)
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            documents=documents,
            states=states,
            fields=sum(document.field_count for document in report.documents),
            to_review=sum(document.to_review for document in report.documents),
            style=(_FOLDER / "report.css").read_text(encoding="utf-8"),
            script=script,
            script_hash=f"sha256-{digest}",
        )
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _document(number: int, document: ReportDocument) -> _DocumentView:
    state = "failed" if document.failed else "review" if document.to_review else "fine"
    pages = tuple(_page(f"d{number}p{page.number}", page) for page in document.pages)
    return _DocumentView(f"d{number}", document, state, pages)


def _page(prefix: str, page: ReportPage) -> _PageView:
    marks = tuple(Mark(f"{prefix}f{number}", field) for number, field in enumerate(page.fields, 1))
    tables = tuple(tables_of(marks))
    picture = "" if page.image is None else base64.b64encode(page.image).decode()
    return _PageView(
        page=page,
        picture=picture,
        marks=marks,
        values=tuple(mark for mark in marks if mark.field.row is None),
        tables=tables,
        found_tables=() if tables else tuple(b for b in blocks_of(page.blocks, BlockKind.TABLE) if b.table is not None),
        checkboxes=tuple(tick_of(b) for b in blocks_of(page.blocks, BlockKind.CHECKBOX) if not _is_field(b, page)),
        text=tuple(b for b in page.blocks if b.kind in (BlockKind.TITLE, BlockKind.TEXT) and b.text.strip()),
    )


def _is_field(block: Block, page: ReportPage) -> bool:
    """Whether a check box is among the values already."""
    return any(
        isinstance(field.value, bool) and field.box is not None and field.box.iou(block.box) > 0.5
        for field in page.fields
    )
