import sys
import types
import zlib

import numpy as np
import pytest
from PIL import Image

from docmill.failures import EncryptedDocument, PageTooLarge, UnreadablePage, UnsupportedFormat
from docmill.rendering import RenderLimits, draw_page, open_document, render_page
from docmill.rendering import poppler as second_opinion

CORNER = b"0 0 0 rg 0 0 100 100 re f"  # black square at the lower left of user space


def dark_corner(page) -> str:
    """Which corner of the page is black."""
    gray = np.asarray(page.image.convert("L")).astype(int)
    high, wide = gray.shape
    corners = {
        "top left": gray[: high // 20, : wide // 20],
        "top right": gray[: high // 20, -wide // 20 :],
        "bottom left": gray[-high // 20 :, : wide // 20],
        "bottom right": gray[-high // 20 :, -wide // 20 :],
    }
    dark = [name for name, part in corners.items() if part.mean() < 40]
    light = [name for name, part in corners.items() if part.mean() > 250]
    assert len(dark) == 1
    assert len(light) == 3
    return dark[0]


def share_of_ink(page) -> float:
    return float((np.asarray(page.image.convert("L")) < 128).mean())


def test_letter_at_200_dpi(render, make_pdf) -> None:
    page = render(make_pdf(b"", content=CORNER))
    assert (page.width, page.height, page.dpi, page.image.mode) == (1700, 2200, 200.0, "RGB")
    assert page.pixels.shape == (2200, 1700, 3)
    assert dark_corner(page) == "bottom left"


def test_every_page_is_drawn(render, make_pdf) -> None:
    data = make_pdf(b"", b"/MediaBox [0 0 300 792]", b"/MediaBox [0 0 792 612]", content=CORNER)
    assert [(render(data, n).width, render(data, n).height) for n in (1, 2, 3)] == [
        (1700, 2200),
        (834, 2200),
        (2200, 1700),
    ]


@pytest.mark.parametrize(
    ("degrees", "corner"), [(0, "bottom left"), (90, "top left"), (180, "top right"), (270, "bottom right")]
)
def test_rotate(render, make_pdf, degrees: int, corner: str) -> None:
    page = render(make_pdf(b"/Rotate %d" % degrees, content=CORNER))
    assert dark_corner(page) == corner
    assert (page.width > page.height) == (degrees in (90, 270))


def test_crop_box(render, make_pdf) -> None:
    page = render(make_pdf(b"/CropBox [306 396 612 792]", content=b"0 0 0 rg 306 396 50 50 re f"))
    assert page.width / page.height == pytest.approx(306 / 396, abs=0.002)
    assert dark_corner(page) == "bottom left"


def test_a_blank_page_is_a_page(render, make_pdf) -> None:
    assert share_of_ink(render(make_pdf(b""))) == 0


def test_annotations_are_drawn(render, make_pdf) -> None:
    look = (b"/Type /XObject /Subtype /Form /BBox [0 0 100 100]", b"0 0 0 rg 0 0 100 100 re f")
    note = (b"/Type /Annot /Subtype /Stamp /Rect [0 692 100 792] /F 4 /AP << /N 101 0 R >>", None)
    page = render(make_pdf(b"/Annots [100 0 R]", extra={100: note, 101: look}))
    assert dark_corner(page) == "top left"


def test_check_boxes_are_drawn_as_they_are_set(render, make_pdf) -> None:
    def form(state: bytes) -> bytes:
        on = (b"/Type /XObject /Subtype /Form /BBox [0 0 100 100]", b"0 0 0 rg 0 0 100 100 re f")
        off = (b"/Type /XObject /Subtype /Form /BBox [0 0 100 100]", b"")
        box = (
            b"/Type /Annot /Subtype /Widget /FT /Btn /T (agree) /F 4 /Rect [0 692 100 792] /V /%s /AS /%s "
            b"/AP << /N << /Yes 101 0 R /Off 102 0 R >> >>" % (state, state),
            None,
        )
        return make_pdf(
            b"/Annots [100 0 R]", catalog=b"/AcroForm << /Fields [100 0 R] >>", extra={100: box, 101: on, 102: off}
        )

    assert dark_corner(render(form(b"Yes"))) == "top left"
    assert share_of_ink(render(form(b"Off"))) == 0


def test_the_text_of_a_field_without_appearance_is_drawn(render, make_pdf) -> None:
    field = (
        b"/Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Typed into the form) /F 4 /Rect [50 600 500 650] "
        b"/DA (/Helv 24 Tf 0 g)",
        None,
    )
    font = (b"/Type /Font /Subtype /Type1 /BaseFont /Helvetica", None)
    resources = b"/AcroForm << /Fields [100 0 R] /NeedAppearances true /DR << /Font << /Helv 101 0 R >> >> >>"
    page = render(make_pdf(b"/Annots [100 0 R]", catalog=resources, extra={100: field, 101: font}))
    assert share_of_ink(page) > 0.0005


def test_encrypted_pages(render, make_pdf, store) -> None:
    data = make_pdf(b"", content=CORNER, password=b"key")
    assert dark_corner(render(data, passwords=("wrong", "key"))) == "bottom left"
    with pytest.raises(EncryptedDocument):
        render_page(store(data), "application/pdf", 1)


def test_small_pages_are_drawn_finer(render, make_pdf) -> None:
    label = render(make_pdf(b"/MediaBox [0 0 288 144]"))
    assert (label.width, label.dpi) == (1600, 400.0)
    stamp = render(make_pdf(b"/MediaBox [0 0 20 20]"))
    assert stamp.dpi == 600.0


def pictured(make_pdf, box: tuple[int, int], size: tuple[int, int], declared: tuple[int, int] | None = None) -> bytes:
    wide, high = declared or size
    picture = (
        b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 "
        b"/Filter /FlateDecode" % (wide, high),
        zlib.compress(bytes(size[0] * size[1])),
    )
    return make_pdf(
        b"/MediaBox [0 0 %d %d] /Resources << /XObject << /P 100 0 R >> >>" % box,
        content=b"q %d 0 0 %d 0 0 cm /P Do Q" % box,
        extra={100: picture},
    )


def test_the_resolution_of_a_scan_counts(render, make_pdf) -> None:
    assert render(pictured(make_pdf, (612, 792), (2550, 3300))).dpi == pytest.approx(300, abs=0.1)
    assert render(pictured(make_pdf, (612, 792), (850, 1100))).dpi == 200.0
    small = render(pictured(make_pdf, (120, 86), (3000, 2150)))
    assert small.dpi == pytest.approx(1800, abs=1)
    assert small.width == 3000


def test_a_scan_on_far_too_large_a_page_is_not_enlarged(render, make_pdf) -> None:
    page = render(pictured(make_pdf, (1700, 2200), (1700, 2200)))
    assert (page.width, page.height, page.dpi) == (1700, 2200, 72.0)
    assert render(pictured(make_pdf, (1700, 2200), (400, 500))).height == 2200
    assert render(make_pdf(b"/MediaBox [0 0 1700 2200]")).width > 3000


def test_a_small_logo_does_not_count(render, make_pdf) -> None:
    data = pictured(make_pdf, (612, 792), (2000, 2000)).replace(b"q 612 0 0 792 0 0 cm", b"q 80  0 0 80  0 0 cm")
    assert render(data).dpi == 200.0


def test_large_pages_are_drawn_within_the_limit(render, make_pdf) -> None:
    limits = RenderLimits(max_pixels=2_000_000)
    page = render(
        make_pdf(b"/MediaBox [0 0 14400 14400]", content=b"0 0 0 rg 0 0 2000 2000 re f"), limits=RenderLimits()
    )
    assert page.width * page.height <= 12_000_000 * 1.001
    assert dark_corner(page) == "bottom left"
    assert render(make_pdf(b"/MediaBox [0 0 1224 1584]"), limits=limits).width == pytest.approx(1243, abs=2)


@pytest.mark.parametrize("box", [b"0 0 595 2147483648", b"0 0 100000000 100000000", b"0 0 0.01 1000000"])
def test_absurd_pages_are_refused(render, make_pdf, box: bytes) -> None:
    with pytest.raises(PageTooLarge):
        render(make_pdf(b"/MediaBox [%s]" % box))


def test_a_bomb_in_a_page_is_refused_before_it_is_decoded(render, make_pdf) -> None:
    with pytest.raises(PageTooLarge, match="60000 x 60000"):
        render(pictured(make_pdf, (612, 792), (10, 10), declared=(60_000, 60_000)))


def test_a_damaged_page_does_not_hide_the_others(store, make_pdf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_opinion.shutil, "which", lambda _name: None)
    path = store(make_pdf(b"", b"", content=CORNER).replace(b"/Kids [10 0 R 11 0 R]", b"/Kids [10 0 R 99 0 R]"))
    assert open_document(path).page_count == 2
    assert dark_corner(render_page(path, "application/pdf", 1)) == "bottom left"
    with pytest.raises(UnreadablePage, match="page 2"):
        render_page(path, "application/pdf", 2)


@pytest.fixture
def poppler(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A stand-in for pdf2image that answers with ``drawn``."""
    module = types.ModuleType("pdf2image")
    module.drawn = [Image.new("RGB", (1700, 2200), "white")]
    module.facts = {"Pages": 2, "Page    2 size": "612 x 792 pts (letter)"}
    module.pdfinfo_from_path = lambda *_a, **_o: module.facts
    module.convert_from_path = lambda *_a, **_o: module.drawn
    monkeypatch.setattr(second_opinion.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setitem(sys.modules, "pdf2image", module)
    return module


def test_poppler_gives_a_second_opinion(store, make_pdf, poppler) -> None:
    path = store(make_pdf(b"", b"").replace(b"/Kids [10 0 R 11 0 R]", b"/Kids [10 0 R 99 0 R]"))
    page = render_page(path, "application/pdf", 2)
    assert (page.width, page.dpi) == (1700, 200.0)
    assert "poppler" in page.notes[0]


def test_popplers_one_pixel_answer_is_no_page(store, make_pdf, poppler) -> None:
    path = store(make_pdf(b"", b"").replace(b"/Kids [10 0 R 11 0 R]", b"/Kids [10 0 R 99 0 R]"))
    poppler.drawn = [Image.new("RGB", (1, 1))]
    with pytest.raises(UnreadablePage):
        render_page(path, "application/pdf", 2)
    poppler.facts = {"Page    2 size": "595 x 2147483648 pts"}
    with pytest.raises(PageTooLarge):
        render_page(path, "application/pdf", 2)


def test_pages_that_are_not_there(store, make_pdf) -> None:
    path = store(make_pdf(b""))
    with pytest.raises(UnreadablePage, match="no page 2"):
        render_page(path, "application/pdf", 2)
    with pytest.raises(ValueError, match="from 1"):
        render_page(path, "application/pdf", 0)
    with pytest.raises(UnsupportedFormat):
        render_page(path, "text/html", 1)


def test_a_page_as_bytes(store, make_pdf) -> None:
    image = draw_page(store(make_pdf(b"", content=CORNER)), "application/pdf", 1)
    assert (image.media_type, image.width, image.height, image.dpi) == ("image/jpeg", 1700, 2200, 200.0)
    assert image.data.startswith(b"\xff\xd8\xff")
