from __future__ import annotations

import json
from pathlib import Path

import pytest

from docmill.evaluation import read_dataset
from docmill.failures import ConfigurationError
from docmill.synthesis import Kind
from docmill.synthesis.__main__ import write_set
from docmill.synthesis.files import Format


def write(folder: Path, *records: object, name: str = "truth.jsonl") -> None:
    (folder / "a.jpg").write_bytes(b"picture")
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_what_the_generator_writes_is_read_back_as_it_was(tmp_path: Path) -> None:
    written = write_set(tmp_path, kinds=list(Kind), count=6, form=Format.PDF, dpi=50)
    read = read_dataset(tmp_path)
    assert [d.file for d in read.documents] == [t.file for t in written]
    for ours, theirs in zip(written, read.documents, strict=True):
        assert ours.record() == theirs.record()
        assert ours.line_records() == theirs.line_records()
        assert read.path(theirs).is_file()


def test_boxes_in_pixels_become_fractions(tmp_path: Path) -> None:
    write(tmp_path, {"file": "a.jpg", "width": 200, "height": 100, "fields": {"total": 13.1, "date": None}})
    write(tmp_path, {"file": "a.jpg", "lines": [{"text": "x", "box": [20, 10, 40, 20]}]}, name="words.jsonl")
    (document,) = read_dataset(tmp_path).documents
    (page,) = document.page_truths
    assert page.lines[0].box.as_list() == [0.1, 0.1, 0.2, 0.2]
    assert {name: value.text for name, value in document.fields.items()} == {"total": "13.1", "date": ""}


def test_tables_as_objects_become_rows(tmp_path: Path) -> None:
    rows = [{"name": "Wax", "qty": 1.0}, {"name": "Chair", "price": None}]
    write(tmp_path, {"file": "a.jpg", "tables": [{"title": "lines", "rows_as_objects": rows}]})
    (table,) = read_dataset(tmp_path).documents[0].tables
    assert table.header == ("name", "qty", "price")
    assert table.rows == (("Wax", "1.0", ""), ("Chair", "", ""))


def test_a_type_keeps_its_own_documents_and_those_that_say_none(tmp_path: Path) -> None:
    (tmp_path / "b.jpg").write_bytes(b"")
    (tmp_path / "c.jpg").write_bytes(b"")
    write(
        tmp_path,
        {"file": "a.jpg", "document_type": "receipt"},
        {"file": "b.jpg", "document_type": "invoice"},
        {"file": "c.jpg"},
    )
    dataset = read_dataset(tmp_path)
    assert [d.file for d in dataset.of_type("receipt").documents] == ["a.jpg", "c.jpg"]
    assert len(dataset.of_type("generic").documents) == 3


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (["{not json"], "line 1 is not JSON"),
        ([{"fields": {}}], "line 1 has no text 'file'"),
        ([{"file": "a.jpg"}, "[1]"], "line 2 has no text 'file'"),
        ([{"file": "b.jpg"}], "no file b.jpg"),
        ([{"file": "a.jpg"}, {"file": "a.jpg"}], "a.jpg is there twice"),
        ([{"file": "a.jpg", "checkboxes": [{"label": "x"}]}], "line 1 is wrong: KeyError 'checked'"),
        ([{"file": "a.jpg", "checkboxes": [{"label": "x", "checked": "no"}]}], "checked is true or false"),
        ([{"file": "a.jpg", "field_boxes_norm": {"total": [1, 2]}}], "line 1 is wrong"),
        ([], "is empty"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, records: list[object], message: str) -> None:
    write(tmp_path, *records)
    with pytest.raises(ConfigurationError) as raised:
        read_dataset(tmp_path)
    assert message in raised.value.message
    assert raised.value.remedy


def test_a_folder_without_truth_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no truth\.jsonl in"):
        read_dataset(tmp_path)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"file": "a.jpg", "lines": [{"text": "x", "box": [20, 10, 40, 20]}]}, "need the page's width and height"),
        ({"file": "z.jpg", "lines": []}, "names files that truth.jsonl does not: z.jpg"),
        ({"file": "a.jpg"}, "line 1 is wrong"),
    ],
)
def test_wrong_lines_of_words_are_named(tmp_path: Path, record: object, message: str) -> None:
    write(tmp_path, {"file": "a.jpg"})
    write(tmp_path, record, name="words.jsonl")
    with pytest.raises(ConfigurationError) as raised:
        read_dataset(tmp_path)
    assert message in raised.value.message
