from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pypdfium2
import pytest
from PIL import Image, ImageSequence

from docmill.synthesis.files import Format
from docmill.synthesis.samples import SAMPLES, Sample, write_samples

FOLDER = Path(__file__).parents[2] / "samples"
WHOLE = [sample for sample in SAMPLES if sample.kept == 1]
NAMES = [sample.name for sample in WHOLE]


def pages_of(path: Path, dpi: int) -> list[Image.Image]:
    if path.suffix != ".pdf":
        with Image.open(path) as image:
            return [frame.convert("L") for frame in ImageSequence.Iterator(image)]
    pdf = pypdfium2.PdfDocument(path)
    try:
        return [page.render(scale=dpi / 72).to_pil().convert("L") for page in pdf]
    finally:
        pdf.close()


def truths_of(folder: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]


def test_there_are_twelve_of_four_formats_in_less_than_three_megabytes() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.parent != FOLDER]
    assert sorted(path.relative_to(FOLDER).as_posix() for path in files) == sorted(s.name for s in SAMPLES)
    assert len(files) == 12
    assert {sample.form for sample in SAMPLES} == set(Format)
    assert {(sample.form, sample.pages > 1) for sample in WHOLE} >= {(Format.TIFF, True), (Format.PDF, True)}
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 3_000_000


@pytest.mark.parametrize("sample", WHOLE, ids=NAMES)
def test_the_committed_file_shows_what_the_generator_draws(sample: Sample) -> None:
    drawn = sample.make().pages
    committed = pages_of(FOLDER / sample.name, sample.dpi)
    assert len(drawn) == len(committed) == sample.pages
    for ours, theirs in zip(drawn, committed, strict=True):
        assert abs(ours.width - theirs.width) <= 1
        assert abs(ours.height - theirs.height) <= 1
        levels = np.asarray(ours.convert("L"), dtype=np.float32)
        others = np.asarray(theirs.resize(ours.size), dtype=np.float32)
        assert np.abs(levels - others).mean() < 6  # compression, and other versions of FreeType


def test_the_committed_truth_is_that_of_the_generator(tmp_path: Path) -> None:
    write_samples(tmp_path)
    assert truths_of(tmp_path, "truth.jsonl") == truths_of(FOLDER, "truth.jsonl")
    assert [(r["file"], r["page"]) for r in truths_of(tmp_path, "words.jsonl")] == [
        (r["file"], r["page"]) for r in truths_of(FOLDER, "words.jsonl")
    ]


def test_exactly_one_is_broken_and_cannot_be_opened() -> None:
    (broken,) = (sample for sample in SAMPLES if sample.kept < 1)
    with pytest.raises(pypdfium2.PdfiumError):
        pypdfium2.PdfDocument(FOLDER / broken.name)
    (record,) = (truth for truth in truths_of(FOLDER, "truth.jsonl") if truth.get("expect"))
    assert record["file"] == broken.name
    assert record["expect"] == "unreadable_document"


def test_the_readme_names_every_sample() -> None:
    text = (FOLDER / "README.md").read_text("utf-8")
    assert all(f"`{sample.name}`" in text for sample in SAMPLES)
