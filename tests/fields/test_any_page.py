"""Whatever the OCR says, the rules answer: they never raise, never leave the page, never invent ink."""

from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.document_types import load_document_type
from docmill.extraction import Cell, Grid, Line, Mark, PageText, Word
from docmill.finding.extractor import find_fields
from docmill.geometry import Box

TYPES = [load_document_type(name) for name in ("receipt", "invoice", "application_form", "generic")]

fraction = st.floats(0, 1, width=32)
boxes = st.builds(Box.clipped, fraction, fraction, fraction, fraction)
LABELS = ["Total", "TOTAL:", "Name", "姓名", "合计", "Yes", "No", "5. Date", "Bill To:", "Signature", "Change"]
HEADS = ["Description", "Qty", "Amount", "SDN BHD", "No 5, Jalan Satu,"]
REST = ["Date: 12/03/2018", "12.50", "RM 5.00", "□", "☑ A", "(1)", "_____", "Cash 10.00", ":", "x", "("]
snippets = st.sampled_from([*LABELS, *HEADS, *REST])
texts = st.one_of(snippets, st.lists(snippets, max_size=3).map(" ".join), st.text(max_size=20))


@st.composite
def lines(draw: st.DrawFn) -> Line:
    text, box = draw(texts), draw(boxes)
    words = tuple(Word(w, box, 0.9) for w in text.split()) if draw(st.booleans()) else ()
    return Line(text, box, draw(st.floats(0, 1)), words)


pages = st.builds(
    PageText,
    st.lists(lines(), max_size=14).map(tuple),
    st.lists(st.builds(Mark, boxes, st.booleans(), fraction, fraction), max_size=4).map(tuple),
    st.lists(
        st.builds(
            Grid, boxes, st.lists(st.builds(Cell, boxes, st.integers(0, 3), st.integers(0, 3)), max_size=5).map(tuple)
        ),
        max_size=2,
    ).map(tuple),
    turned=st.sampled_from([0, 90, 180, 270]),
    skew=st.sampled_from([0.0, 2.5, -4.0, 15.0]),
    width=st.sampled_from([0, 1000]),
    height=st.sampled_from([0, 1400]),
)


@settings(max_examples=150, deadline=None)
@given(page=pages, which=st.integers(0, len(TYPES) - 1))
def test_every_page_gets_an_answer(page: PageText, which: int) -> None:
    document_type = TYPES[which]
    fields, blocks, missing = find_fields(page, document_type)
    names = {s.name for s in document_type.fields}
    for field in fields:
        assert 0 <= field.confidence <= 1
        assert field.name.partition(".")[0] in names or not names
        assert field.box is not None
    assert all(0 <= block.confidence <= 1 for block in blocks)
    assert set(missing) <= names
    if not any(line.text.strip() for line in page.lines):
        assert all(field.value in (True, False) for field in fields)
