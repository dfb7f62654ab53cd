"""What goes into Postgres comes out the same."""

import json
import math
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.extraction import Block, BlockKind, Extraction, Field, FieldKind, TableData
from docmill.failures import Category, Disposition, Failure
from docmill.geometry import Box
from storage.ledger.codec import (
    clean_json,
    clean_text,
    decode_extraction,
    decode_failure,
    dump_json,
    encode_extraction,
    failure_columns,
    field_columns,
    value_text,
)

texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20)
confidences = st.floats(0, 1)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    x0, x1 = sorted(draw(st.tuples(st.integers(0, 100_000), st.integers(0, 100_000))))
    y0, y1 = sorted(draw(st.tuples(st.integers(0, 100_000), st.integers(0, 100_000))))
    return Box(x0 / 100_000, y0 / 100_000, x1 / 100_000, y1 / 100_000)


values = st.one_of(st.none(), texts, st.booleans(), st.dates(), st.decimals(allow_nan=False, allow_infinity=False))

fields = st.builds(
    Field,
    name=texts,
    kind=st.sampled_from(FieldKind),
    raw=texts,
    value=values,
    confidence=confidences,
    box=st.none() | boxes(),
    row=st.none() | st.integers(0, 1000),
    currency=st.none() | st.sampled_from(["EUR", "MYR", "CNY"]),
    needs_review=st.booleans(),
    notes=st.lists(texts, max_size=3).map(tuple),
)

tables = st.integers(0, 3).flatmap(
    lambda columns: st.builds(
        TableData,
        header=st.tuples(*[texts] * columns),
        rows=st.lists(st.tuples(*[texts] * columns), max_size=3).map(tuple),
    )
)

blocks = st.builds(
    Block,
    kind=st.sampled_from(BlockKind),
    text=texts,
    box=boxes(),
    confidence=confidences,
    table=st.none() | tables,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)

extractions = st.builds(
    Extraction,
    engine=st.sampled_from(["ocr", "vision"]),
    document_type=texts,
    fields=st.lists(fields, max_size=4).map(tuple),
    blocks=st.lists(blocks, max_size=4).map(tuple),
    text=texts,
    confidence=confidences,
    missing=st.lists(texts, max_size=3).map(tuple),
    raw=st.dictionaries(texts, json_values, max_size=3),
)


@given(extractions)
def test_an_extraction_comes_back_the_same(extraction: Extraction) -> None:
    stored = json.loads(dump_json(encode_extraction(extraction)))
    raw = json.loads(dump_json(extraction.raw))
    assert decode_extraction(stored, raw) == extraction


@given(fields)
def test_values_come_back_of_the_same_type_and_digits(field: Field) -> None:
    extraction = Extraction("ocr", "generic", (field,), (), "", 1.0)
    (found,) = decode_extraction(json.loads(dump_json(encode_extraction(extraction)))).fields
    assert type(found.value) is type(field.value)
    assert str(found.value) == str(field.value)


@given(st.text(st.characters()))
def test_clean_text_is_what_utf8_and_postgres_take(text: str) -> None:
    cleaned = clean_text(text)
    assert "\x00" not in cleaned
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert len(cleaned) == len(text)


def test_clean_json_takes_whatever_an_engine_says() -> None:
    found = clean_json(
        {
            "a\x00": "b\x00\ud800",
            3: (1, {2}),
            "nan": math.nan,
            "inf": [math.inf],
            "decimal": Decimal("1.50"),
            "date": date(2026, 3, 1),
            "score": np.float32(0.5),
            "count": np.int64(3),
            "kind": FieldKind.DATE,
        }
    )
    assert found == {
        "a\ufffd": "b\ufffd\ufffd",
        "3": [1, [2]],
        "nan": None,
        "inf": [None],
        "decimal": "1.50",
        "date": "2026-03-01",
        "score": 0.5,
        "count": 3,
        "kind": "date",
    }
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("plain", "plain"),
        (True, "true"),
        (False, "false"),
        (date(2018, 4, 3), "2018-04-03"),
        (Decimal("1234.50"), "1234.50"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E-7"), "0.0000001"),
        (Decimal("1E+9999"), "1E+9999"),
        (Decimal("NaN"), "NaN"),
    ],
)
def test_value_text(value: object, expected: str | None) -> None:
    assert value_text(value) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "column"),
    [("x", None), (Decimal(3), "value_number"), (date(2026, 1, 2), "value_date"), (False, "value_boolean")],
)
def test_each_value_fills_its_own_column(value: object, column: str | None) -> None:
    columns = field_columns(
        Field("n", FieldKind.TEXT, "r", value, 0.5, None),  # type: ignore[arg-type]
        position=0,
        page_no=1,
    )
    typed = {name: columns[name] for name in ("value_number", "value_date", "value_boolean")}
    assert {name for name, filled in typed.items() if filled is not None} == ({column} if column else set())
    assert columns["value_text"] is not None
    assert columns["x0"] is None


@pytest.mark.parametrize("absurd", [Decimal("1E+9999"), Decimal("Infinity"), Decimal("NaN")])
def test_an_absurd_number_stays_text(absurd: Decimal) -> None:
    columns = field_columns(Field("n", FieldKind.NUMBER, "r", absurd, math.nan, None), position=0, page_no=1)
    assert columns["value_number"] is None
    assert columns["value_text"] == str(absurd)
    assert columns["confidence"] == 0.0


def test_a_failure_comes_back_the_same() -> None:
    failure = Failure("invalid_output", Category.ENGINE, "no", "try", Disposition.RESAMPLE, {"body": "x"})
    assert decode_failure(failure_columns(failure)) == failure
