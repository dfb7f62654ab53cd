from __future__ import annotations

import base64
import hashlib
import io
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from html.parser import HTMLParser

import pytest
from PIL import Image

from docmill.extraction import Block, BlockKind, Field, FieldKind, FieldValue, TableData
from docmill.geometry import Box
from docmill.report import ReportData, ReportDocument, ReportFailure, ReportPage, page_picture, render_report
from docmill.report.values import tick_of

BOX = Box(0.1, 0.2, 0.4, 0.25)
VOID = {"meta", "img", "input", "link", "br", "hr", "rect", "path"}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}"


@dataclass
class Element:
    """A parsed element."""

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """Elements below it of that tag and with those attributes (class: one of its classes)."""
        found = []
        for child in self.children:
            fits = (not tag or child.tag == tag) and all(
                value in child.attributes.get("class", "").split()
                if name == "klass"
                else child.attributes.get(name.replace("_", "-")) == value
                for name, value in wanted.items()
            )
            found += [child] if fits else []
            found += child.all(tag, **wanted)
        return found

    @property
    def words(self) -> str:
        """All text in it."""
        return " ".join([self.text, *(child.words for child in self.children)]).strip()


class Tree(HTMLParser):
    """Builds the tree and fails where tags do not close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]
        self.feed(html)
        self.close()
        assert [e.tag for e in self.open] == [""], "some elements are not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID or (tag == "rect" and "data-mark" in element.attributes):
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def parse(report: ReportData) -> Element:
    return Tree(render_report(report)).root


def value(name: str, kind: FieldKind, raw: str, typed: FieldValue, confidence: float, **more: object) -> Field:
    return replace(Field(name, kind, raw, typed, confidence, BOX), **more)  # type: ignore[arg-type]


def picture(width: int = 60, height: int = 80) -> bytes:
    return page_picture(Image.new("L", (width, height), 255))[0]


FIELDS = (
    value("company", FieldKind.TEXT, "ACME", "ACME", 0.97),
    value("date", FieldKind.DATE, "11/03/2018", date(2018, 3, 11), 0.72),
    value("total", FieldKind.MONEY, "RM 1,013.10", Decimal("1013.10"), 0.31, currency="MYR", needs_review=True,
          notes=("invalid_pattern",)),
    value("paid", FieldKind.BOOLEAN, "x", True, 0.9),
    value("phone", FieldKind.TEXT, "555", "555", 0.6, box=None),
    value("items.description", FieldKind.TEXT, "Tea", "Tea", 0.95, row=0),
    value("items.amount", FieldKind.MONEY, "2.00", Decimal("2.00"), 0.95, row=0),
    value("items.description", FieldKind.TEXT, "Cake", "Cake", 0.95, row=1),
)  # fmt: skip
BLOCKS = (
    Block(BlockKind.TITLE, "Receipt", BOX, 0.9),
    Block(BlockKind.CHECKBOX, "☒ Member", Box(0.1, 0.6, 0.12, 0.62), 0.9),
    Block(BlockKind.TABLE, "", BOX, 0.9, TableData(("Head", "Other"), (("cell one", "cell two"),))),
)
READ = ReportDocument(
    "receipts/a.jpg",
    "receipt",
    (ReportPage(1, picture(), 60, 80, FIELDS, BLOCKS, missing=("address",)), ReportPage(2, None, 60, 80)),
)
FINE = ReportDocument("receipts/b.jpg", "receipt", (ReportPage(1, picture(), 60, 80, FIELDS[:1]),))
BROKEN = ReportDocument(
    "receipts/c.pdf", "receipt", failure=ReportFailure("unreadable_document", "It cannot be opened.", "Scan it again.")
)
PAGE_FAILED = ReportDocument(
    "receipts/d.tif",
    "receipt",
    (ReportPage(1, None, 0, 0, failure=ReportFailure("page_deadline_exceeded", "Too slow.", "Raise the deadline.")),),
)
REPORT = ReportData(
    "Batch 7",
    "s3://forms/receipts",
    "ocr",
    datetime(2026, 11, 30, 20, 0, tzinfo=UTC),
    (READ, FINE, BROKEN, PAGE_FAILED),
    seconds=8.0,
    command="docmill report 7",
)


def test_every_field_is_there_with_its_value_confidence_and_box() -> None:
    root = parse(REPORT)
    rows = {
        row.attributes["data-mark"]: row
        for row in root.all()
        if row.tag in ("tr", "td") and row.attributes.get("data-mark")
    }
    boxes = {rect.attributes["data-mark"]: rect for rect in root.all("rect") if "data-mark" in rect.attributes}
    assert len(rows) == len(FIELDS) + 1
    assert boxes.keys() == rows.keys() - {"d1p1f5"}  # the one without a place
    assert all(row.attributes["id"] == mark for mark, row in rows.items())
    assert {rect.attributes["class"] for rect in boxes.values()} == {"sure", "fair", "doubtful"}
    shown = {row.all("th")[0].words: row.words for row in rows.values() if row.tag == "tr"}
    assert "ACME" in shown["company"]
    assert "97%" in shown["company"]
    assert "2018-03-11" in shown["date"]
    assert "read as “11/03/2018”" in shown["date"]
    assert "1,013.10 MYR" in shown["total"]
    assert "read as" not in shown["total"]
    assert "does not have the expected form" in shown["total"]
    assert "yes" in shown["paid"]
    assert "no place on the page" in shown["phone"]


def test_a_box_lies_where_the_value_stands() -> None:
    (rect,) = parse(replace(REPORT, documents=(FINE,))).all("rect", data_mark="d1p1f1")
    x, y, width, height = (float(rect.attributes[name]) for name in ("x", "y", "width", "height"))
    assert x + width / 2 == pytest.approx(250)
    assert y + height / 2 == pytest.approx(225)
    assert 300 <= width <= 310
    assert 50 <= height <= 60
    assert "ACME" in rect.all("title")[0].words


def test_tables_are_put_together_and_keep_their_gaps() -> None:
    (typed,) = parse(REPORT).all("table", klass="cells")
    assert [cell.words for cell in typed.all("th")] == ["Description", "Amount"]
    assert [[cell.words for cell in row.all("td")] for row in typed.all("tr")[1:]] == [["Tea", "2.00"], ["Cake", "–"]]
    untyped = replace(READ, pages=(replace(READ.pages[0], fields=()),))
    (found,) = parse(replace(REPORT, documents=(untyped,))).all("table", klass="cells")
    assert [cell.words for cell in found.all("th")] == ["Head", "Other"]
    assert [cell.words for cell in found.all("td")] == ["cell one", "cell two"]


def test_printed_titles_may_have_dots() -> None:
    cells = tuple(
        value(name, FieldKind.TEXT, name, name, 0.9, row=0) for name in ("12B. Earnings.Type", "12B. Earnings.Item No.")
    )
    page = replace(READ.pages[0], fields=cells, blocks=())
    root = parse(replace(REPORT, documents=(replace(READ, pages=(page,)),)))
    assert [h.words for h in root.all("h3")] == ["12B. Earnings"]
    assert [cell.words for cell in root.all("table", klass="cells")[0].all("th")] == ["Type", "Item No."]


def test_a_check_box_that_is_a_field_is_not_shown_twice() -> None:
    elsewhere = Block(BlockKind.CHECKBOX, "[ ] Guest", Box(0.6, 0.6, 0.62, 0.62), 0.9)
    page = replace(READ.pages[0], blocks=(replace(BLOCKS[1], box=BOX), elsewhere))
    root = parse(replace(REPORT, documents=(replace(READ, pages=(page,)),)))
    assert [item.words for item in root.all("ul", klass="boxes")[0].all("li")] == ["Guest  empty"]


def test_check_boxes_text_and_missing_fields_are_shown() -> None:
    root = parse(REPORT)
    assert [item.words for item in root.all("ul", klass="boxes")[0].all("li")] == ["Member  ticked"]
    assert "Receipt" in root.all("details", klass="text")[0].words
    (missing,) = root.all("tr", klass="missing")
    assert "address" in missing.words
    assert "not found" in missing.words


def test_failures_are_shown_with_code_and_remedy() -> None:
    notes = [note.words for note in parse(REPORT).all("div", klass="failure")]
    assert len(notes) == 2
    for note, failure in zip(notes, (BROKEN.failure, PAGE_FAILED.pages[0].failure), strict=True):
        assert failure is not None
        assert all(part in note for part in (failure.code, failure.message, failure.remedy))


def test_the_summary_counts_what_is_there() -> None:
    root = parse(REPORT)
    figures = {div.all("dt")[0].words: div.all("dd")[0].words for div in root.all("dl", klass="figures")[0].all("div")}
    assert figures == {
        "Documents": "4",
        "Pages": "4",
        "Fields": "9",
        "To review": "2",
        "Failed": "2",
        "Pages a second": "0.50",
    }
    articles = root.all("article")
    assert [article.attributes["data-state"] for article in articles] == ["review", "fine", "failed", "failed"]
    labels = [" ".join(label.words.split()) for label in root.all("label")]
    assert labels == ["All 4", "Needs review 1", "Failed 2"]
    links = [link.attributes["href"] for link in root.all("nav") or root.all("details", klass="index")[0].all("a")]
    assert links == [f"#{article.attributes['id']}" for article in articles]


def test_ids_are_used_once_and_every_reference_has_its_target() -> None:
    root = parse(REPORT)
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in root.all():
        if element.attributes.get("href", "").startswith("#"):
            assert element.attributes["href"][1:] in ids
        if "aria-labelledby" in element.attributes:
            assert element.attributes["aria-labelledby"] in ids


def test_pages_can_be_reached_without_a_mouse_and_pictures_have_a_text() -> None:
    root = parse(REPORT)
    assert all(
        "tabindex" in row.attributes
        for row in root.all("tr")
        if row.attributes.get("data-mark") not in (None, "d1p1f5")
    )
    assert all(image.attributes["alt"] for image in root.all("img"))
    assert root.all("html")[0].attributes["lang"] == "en"
    assert [heading.tag for heading in root.all() if re.fullmatch("h[1-6]", heading.tag)][:2] == ["h1", "h2"]


def test_nothing_is_loaded_from_outside() -> None:
    html = render_report(REPORT)
    root = Tree(html).root
    for element in root.all():
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            target = element.attributes.get(name, "")
            assert not target or target.startswith(("data:image/jpeg;base64,", "#")), target
        assert element.tag not in ("link", "iframe", "object", "embed", "base")
    style = root.all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"(src|href)\s*=\s*[\"']?\s*(https?:)?//", html)


def test_the_picture_is_the_page() -> None:
    image = parse(replace(REPORT, documents=(FINE,))).all("img")[0]
    data = base64.b64decode(image.attributes["src"].partition(",")[2])
    with Image.open(io.BytesIO(data)) as opened:
        assert opened.size == (60, 80)


def test_hostile_values_stay_text() -> None:
    hostile = replace(
        value(HOSTILE, FieldKind.TEXT, HOSTILE + "raw", HOSTILE, 0.5), needs_review=True, notes=(HOSTILE,)
    )
    cell = replace(hostile, name=f"items.{HOSTILE}", row=0)
    table = Block(BlockKind.TABLE, HOSTILE, BOX, 0.9, TableData((HOSTILE,), ((HOSTILE,),)))
    texts = tuple(Block(kind, HOSTILE, BOX, 0.9) for kind in (BlockKind.TEXT, BlockKind.TITLE, BlockKind.CHECKBOX))
    page = ReportPage(1, picture(), 60, 80, (hostile, cell), (table, *texts), (HOSTILE,))
    failure = ReportFailure(HOSTILE, HOSTILE, HOSTILE)
    report = ReportData(
        HOSTILE,
        HOSTILE,
        HOSTILE,
        REPORT.made_at,
        (
            ReportDocument(HOSTILE, HOSTILE, (page,)),
            ReportDocument(HOSTILE, HOSTILE, (replace(page, fields=(), failure=failure),), failure),
        ),
        command=HOSTILE,
    )
    root = parse(report)
    assert len(root.all("script")) == 1
    assert all("onerror" not in element.attributes for element in root.all())
    assert {image.attributes["src"][:11] for image in root.all("img")} == {"data:image/"}
    assert HOSTILE in root.all("h2")[0].words
    assert "49" not in root.all("h2")[0].words
    assert render_report(report).count("<script>alert") == 0


def test_only_the_script_whose_hash_is_named_may_run() -> None:
    root = parse(REPORT)
    policy = root.all("meta", http_equiv="Content-Security-Policy")[0].attributes["content"]
    digest = base64.b64encode(hashlib.sha256(root.all("script")[0].text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_a_batch_of_nothing_is_a_page_too() -> None:
    root = parse(replace(REPORT, documents=(), seconds=None, unchanged=1))
    assert root.all("article") == []
    assert "1 more document was read before and has not changed" in root.words


@pytest.mark.parametrize(
    ("size", "expected"), [((1654, 2339), (849, 1200)), ((600, 3000), (600, 3000)), ((100, 50), (100, 50))]
)
def test_pages_are_made_small_but_receipts_stay_readable(size: tuple[int, int], expected: tuple[int, int]) -> None:
    data, width, height = page_picture(Image.new("1", size, 1))
    assert (width, height) == pytest.approx(expected, abs=2)
    with Image.open(io.BytesIO(data)) as image:
        assert (image.format, image.size) == ("JPEG", (width, height))


@pytest.mark.parametrize(
    ("text", "checked", "label"),
    [
        ("[x] Yes", True, "Yes"),
        ("[ ] Yes", False, "Yes"),
        ("☐是", False, "是"),
        ("☒ No", True, "No"),
        ("Yes [x]", None, "Yes [x]"),
        ("[x]", True, ""),
    ],
)
def test_check_box_blocks_are_taken_apart(text: str, checked: bool | None, label: str) -> None:
    tick = tick_of(Block(BlockKind.CHECKBOX, text, BOX, 0.9))
    assert (tick.checked, tick.label) == (checked, label)
