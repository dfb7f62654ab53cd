"""Open and draw every file of a set of awkward documents, and compare with what its manifest expects.

Usage: python benchmarks/nasty.py FOLDER [--ocr] [--json FILE]

FOLDER holds ``manifest.json``: ``items`` with ``file`` and ``expect`` (``outcome`` ok, error or either, ``pages``,
``error_kind``, ``password``, ``text_contains``). Each page is drawn in a worker process with a deadline.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nasty_jobs import LIMITS, drawn_size, read_page

from docmill.failures import DocmillError, PageDeadlineExceeded, WorkerCrashed
from docmill.rendering import open_document
from serving.processes import WorkerPool

PAGE_SECONDS = 30.0
CODES = {
    "corrupt": {"unreadable_document", "unreadable_page", "empty_document"},
    "empty_file": {"empty_document"},
    "wrong_type": {"unsupported_format"},
    "unsupported_format": {"unsupported_format", "unreadable_document", "unreadable_page"},
    "password_required": {"encrypted_document"},
    "unsupported_encryption": {"encrypted_document"},
    "too_large": {"page_too_large", "document_too_large"},
    "animated": {"unsupported_format"},
}


@dataclass
class Outcome:
    """What became of one file under one list of passwords."""

    pages: int | None = None
    drawn: list[tuple[int, int, float | None]] = field(default_factory=list)
    errors: list[DocmillError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    text: str = ""
    seconds: float = 0.0


async def outcome_of(pool: WorkerPool, path: Path, passwords: tuple[str, ...], *, ocr: bool) -> Outcome:
    """Open the file and draw all its pages, each on its own: one bad page does not hide the others."""
    result = Outcome()
    began = time.monotonic()
    try:
        opened = await pool.run(open_document, path, LIMITS, passwords, deadline_seconds=PAGE_SECONDS)
    except DocmillError as error:
        result.errors.append(error)
    else:
        result.pages = opened.page_count
        result.notes.extend(opened.notes)
        job = read_page if ocr else drawn_size
        for page_no in range(1, opened.page_count + 1):
            try:
                answer = await pool.run(
                    job, path, opened.media_type, page_no, passwords, deadline_seconds=PAGE_SECONDS * (4 if ocr else 1)
                )
            except DocmillError as error:
                result.errors.append(error)
            else:
                result.drawn.append(answer[:3])
                result.notes.extend(answer[3])
                result.text += answer[4] + "\n"
    result.seconds = time.monotonic() - began
    return result


def squeezed(text: str) -> str:
    """Without blanks and case."""
    return "".join(text.split()).lower()


def verdict(expect: dict[str, Any], name: str, result: Outcome, *, unlocked: bool, ocr: bool) -> str:
    """An empty string where the outcome is right, else what is wrong."""
    if any(isinstance(error, WorkerCrashed | PageDeadlineExceeded) for error in result.errors):
        return "a worker died"
    wanted = "ok" if unlocked else expect["outcome"]
    allowed = CODES.get(expect["error_kind"] or "", set())
    if result.errors:
        if wanted == "ok":
            return f"expected {expect['pages']} pages, got an error"
        wrong = [error.code for error in result.errors if error.code not in allowed]
        return f"error is {wrong[0]}, not one of {sorted(allowed)}" if wrong else ""
    if wanted == "error":
        return f"expected an error of kind {expect['error_kind']}"
    if expect["pages"] is not None and len(result.drawn) != expect["pages"]:
        return f"{len(result.drawn)} pages, not {expect['pages']}"
    if name == "Landscape_6.jpg" and result.drawn[0][:2] != (1800, 1200):
        return f"size {result.drawn[0][:2]}, not 1800 x 1200"
    missing = [t for t in expect.get("text_contains", []) if squeezed(t) not in squeezed(result.text)]
    if ocr and missing:
        return f"does not read {missing[0]!r}"
    return ""


async def run() -> int:
    """Run all, print a table, return 0 when every file is right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ocr", action="store_true", help="also read the pages and look for the texts expected")
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    items = json.loads((arguments.folder / "manifest.json").read_text())["items"]
    items = [item for item in items if (arguments.folder / item["file"]).is_file()]
    rows = []
    async with WorkerPool(2, memory_limit_bytes=3 * 2**30) as pool:
        for item in items:
            path = arguments.folder / item["file"]
            expect = item["expect"]
            result = await outcome_of(pool, path, (), ocr=arguments.ocr)
            wrong = verdict(expect, path.name, result, unlocked=False, ocr=arguments.ocr)
            if not wrong and "password" in expect:
                opened = await outcome_of(pool, path, ("wrong one", expect["password"]), ocr=arguments.ocr)
                wrong = verdict(expect, path.name, opened, unlocked=True, ocr=arguments.ocr)
                wrong = wrong and f"with its password: {wrong}"
            said = result.errors[0] if result.errors else None
            rows.append({"file": path.name, "right": not wrong, "wrong": wrong, "seconds": round(result.seconds, 2)})
            sizes = " ".join(f"{w}x{h}@{dpi or '?'}" for w, h, dpi in result.drawn[:2])
            print(
                f"{'ok ' if not wrong else 'BAD'} {path.name[:34]:34} {result.seconds:6.2f}s {sizes:40} "
                f"{wrong} {f'[{said.code}] {said.message}' if said else ''} {'; '.join(result.notes)}".rstrip()
            )
    right = sum(row["right"] for row in rows)
    print(f"\n{right} of {len(rows)} right")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
