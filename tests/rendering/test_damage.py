"""Any file, however damaged, opens and draws or raises a DocmillError: never another exception."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pillow_heif
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from docmill.failures import DocmillError
from docmill.rendering import RenderLimits, open_document, render_page

pillow_heif.register_heif_opener()
LIMITS = RenderLimits(
    max_source_pixels=400_000, max_pixels=90_000, target_dpi=40, scan_dpi=40, max_dpi=40, min_long_side=50
)
KINDS = ("pdf", "locked pdf", "form", "tiff", "big tiff", "g4", "jpeg", "png", "webp", "bmp", "gif", "heif", "avif")


@pytest.fixture(scope="module")
def good(
    make_pdf: Callable[..., bytes],
    make_tiff: Callable[..., bytes],
    saved: Callable[..., bytes],
    halves: Callable[..., Image.Image],
) -> dict[str, bytes]:
    """One good file of every kind."""
    form = b"/AcroForm << /Fields [100 0 R] /NeedAppearances true >>"
    field = (b"/Type /Annot /Subtype /Widget /FT /Tx /T (a) /V (b) /Rect [9 9 99 99] /DA (/Helv 9 Tf)", None)
    frames = [halves("L"), halves("RGB"), halves("1")]
    exif = Image.Exif()
    exif[0x0112] = 6
    return {
        "pdf": make_pdf(b"/Rotate 90", b"/CropBox [9 9 99 99]", content=b"0 0 0 rg 0 0 50 50 re f"),
        "locked pdf": make_pdf(b"", content=b"0 0 0 rg 0 0 50 50 re f", password=b""),
        "form": make_pdf(b"/Annots [100 0 R]", catalog=form, extra={100: field}),
        "tiff": saved(frames[0], "TIFF", save_all=True, append_images=frames[1:], compression="tiff_lzw"),
        "big tiff": make_tiff({274: 6}, {254: 1}, {258: 8}, big=True),
        "g4": saved(halves("1"), "TIFF", compression="group4", dpi=(204, 98)),
        "jpeg": saved(halves(), "JPEG", exif=exif.tobytes(), dpi=(200, 200)),
        "png": saved(halves("P"), "PNG", transparency=0, exif=exif.tobytes()),
        "webp": saved(halves("RGBA"), "WEBP", exif=exif.tobytes()),
        "bmp": saved(halves("P"), "BMP"),
        "gif": saved(halves("P"), "GIF", save_all=True, append_images=[halves("P", (60, 30))]),
        "heif": saved(halves(), "HEIF"),
        "avif": saved(halves(), "AVIF"),
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damage") / "object"


flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=12)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(cut=st.one_of(st.none(), st.floats(0, 1)), flips=flips, in_head=st.booleans())
def test_damage_is_named(
    good: dict[str, bytes],
    place: Path,
    kind: str,
    cut: float | None,
    flips: list[tuple[float, int]],
    in_head: bool,
) -> None:
    data = bytearray(good[kind])
    reach = min(len(data), 200) if in_head else len(data)
    for at, value in flips:
        data[int(at * reach)] = value
    place.write_bytes(data if cut is None else data[: int(cut * len(data))])
    try:
        opened = open_document(place, LIMITS)
    except DocmillError:
        return
    for page_no in range(1, min(opened.page_count, 3) + 1):
        try:
            page = render_page(place, opened.media_type, page_no, LIMITS)
        except DocmillError:
            continue
        assert page.image.mode in ("L", "RGB")
        assert page.width * page.height <= LIMITS.max_pixels * 1.05 + 65_536


def test_the_good_files_are_good(good: dict[str, bytes], place: Path) -> None:
    for kind in KINDS:
        place.write_bytes(good[kind])
        opened = open_document(place, LIMITS)
        for page_no in range(1, opened.page_count + 1):
            assert render_page(place, opened.media_type, page_no, LIMITS).width > 0
