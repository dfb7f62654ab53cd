"""``python -m docmill.synthesis FOLDER --kind receipt --count 100 --seed 1 --format jpeg``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from docmill.synthesis.documents import Kind, make_document
from docmill.synthesis.files import Format, encode, write_document, write_truth
from docmill.synthesis.samples import write_samples
from docmill.synthesis.scanning import Scan
from docmill.truth import DocumentTruth


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m docmill.synthesis", description="Make documents with known answers. Each one is different."
    )
    parser.add_argument("folder", type=Path, help="where to write images/, truth.jsonl and words.jsonl")
    parser.add_argument("--kind", choices=[*Kind, "all"], default="all", help="what to make (default: all in turn)")
    parser.add_argument("--count", type=int, default=10, help="how many documents (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="of the first document; the others follow (default: 1)")
    parser.add_argument("--format", choices=list(Format), default=Format.JPEG, help="of the files (default: jpeg)")
    parser.add_argument("--pages", type=int, help="pages a document (default: 1 in jpeg and png, else by chance)")
    parser.add_argument("--severity", type=float, default=0.4, help="of the scan, 0 to 1 (default: 0.4)")
    parser.add_argument("--bilevel", action="store_true", help="black and white only (G4 in a TIFF)")
    parser.add_argument("--dpi", type=int, default=150, help="pixels per inch (default: 150)")
    parser.add_argument("--font", type=Path, help="file of a TrueType font (default: the one that comes with Pillow)")
    parser.add_argument("--samples", action="store_true", help="make the bundled samples instead")
    return parser


def write_set(
    folder: Path,
    *,
    kinds: Sequence[Kind],
    count: int,
    seed: int = 1,
    form: Format = Format.JPEG,
    pages: int | None = None,
    how: Scan | None = None,
    dpi: int = 150,
    font: Path | None = None,
) -> list[DocumentTruth]:
    """Write ``count`` documents, the kinds in turn, as ``images/KIND-SEED.EXT``, and their truth.

    Raises:
        ValueError: a seed or a number of pages out of range.
    """
    if pages is None and not form.holds_pages:
        pages = 1
    truths = []
    for index in range(count):
        kind = kinds[index % len(kinds)]
        document = make_document(
            kind, seed + index, dpi=dpi, how=how or Scan(), pages=pages, font=str(font) if font else None
        )
        name = f"images/{kind.value}-{seed + index:06d}{form.suffix}"
        truths.append(write_document(document, folder, name, encode(document, form, dpi=dpi)))
    write_truth(folder, truths)
    return truths


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.font is not None and not chosen.font.is_file():
        parser.error(f"no font file {chosen.font}")
    try:
        if chosen.samples:
            truths = write_samples(chosen.folder)
        else:
            truths = write_set(
                chosen.folder,
                kinds=list(Kind) if chosen.kind == "all" else [Kind(chosen.kind)],
                count=chosen.count,
                seed=chosen.seed,
                form=Format(chosen.format),
                pages=chosen.pages,
                how=Scan(chosen.severity, bilevel=chosen.bilevel),
                dpi=chosen.dpi,
                font=chosen.font,
            )
    except (ValueError, OSError) as error:
        parser.error(str(error))
    pages = sum(truth.pages for truth in truths)
    sys.stdout.write(f"{len(truths)} documents, {pages} pages in {chosen.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
