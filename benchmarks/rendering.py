"""Pages a second of docmill's rendering, as a ratio to a bare PDFium loop in the same run.

Usage: python benchmarks/rendering.py [--pages 40] [--json FILE]

The PDFs are made here: print (60 lines a page) and scans (one 200 dpi JPEG a page). The bare loop opens the file once
and draws every page at 200 dpi; docmill opens, checks, chooses the resolution and draws each page by itself, as it does
when pages are claimed one by one. Best of three rounds, the two taking turns.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pypdfium2 as pdfium
from PIL import Image, ImageDraw, ImageFont

from docmill.rendering import open_document, render_page

DPI = 200


def printed(count: int) -> bytes:
    """A PDF of letter pages with sixty lines of print each."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for number in range(count):
        lines = (f"(Line {n} of page {number}: quantity {n * 7}, amount {n * 13.37:.2f}) '" for n in range(60))
        content = f"BT /F 9 Tf 12 TL 50 760 Td {' '.join(lines)} ET".encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (count, b" ".join(kids))
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return out.getvalue()


def scanned(count: int) -> bytes:
    """A PDF of gray 200 dpi scans of print."""
    pages = []
    font = ImageFont.load_default(25)
    for number in range(count):
        page = Image.new("L", (1700, 2200), 250)
        draw = ImageDraw.Draw(page)
        for line in range(60):
            draw.text((140, 80 + 33 * line), f"Line {line} of page {number}: amount {line * 13.37:.2f}", 30, font)
        pages.append(page)
    out = io.BytesIO()
    pages[0].save(out, "PDF", save_all=True, append_images=pages[1:], resolution=DPI)
    return out.getvalue()


def bare(path: Path) -> int:
    """Every page with PDFium alone."""
    with pdfium.PdfDocument(path) as document:
        for page in document:
            page.render(scale=DPI / 72).to_pil()
            page.close()
        return len(document)


def ours(path: Path) -> int:
    """Every page with docmill."""
    opened = open_document(path)
    for page_no in range(1, opened.page_count + 1):
        render_page(path, opened.media_type, page_no)
    return opened.page_count


def pages_per_second(work: Callable[[Path], int], path: Path) -> float:
    """One round."""
    began = time.perf_counter()
    return work(path) / (time.perf_counter() - began)


def run() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Pages a second against a bare PDFium loop.")
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("print", printed), ("scans", scanned)):
            path = Path(folder) / name
            path.write_bytes(make(arguments.pages))
            rounds = [(pages_per_second(bare, path), pages_per_second(ours, path)) for _ in range(3)]
            alone, whole = max(r[0] for r in rounds), max(r[1] for r in rounds)
            results[name] = {
                "pdfium_pages_per_second": round(alone, 1),
                "docmill_pages_per_second": round(whole, 1),
                "ratio": round(whole / alone, 3),
            }
            print(f"{name:6} PDFium {alone:6.1f} pages/s   docmill {whole:6.1f} pages/s   ratio {whole / alone:.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    run()
