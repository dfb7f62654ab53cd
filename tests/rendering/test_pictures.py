import io
import struct

import numpy as np
import pillow_heif
import pytest
from PIL import Image, ImageDraw

from docmill.failures import PageTooLarge, UnreadablePage, WorkerCrashed
from docmill.rendering import RenderLimits, render_page
from docmill.rendering.picture import RenderedPage

pillow_heif.register_heif_opener()

KINDS = [
    *(("JPEG", mode, {}) for mode in ("L", "RGB", "CMYK")),
    ("JPEG", "RGB", {"progressive": True}),
    *(("PNG", mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
    *(("TIFF", mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F", "LA")),
    *(("TIFF", "1", {"compression": c}) for c in ("group3", "group4", "tiff_lzw")),
    *(("TIFF", "RGB", {"compression": c}) for c in ("jpeg", "tiff_adobe_deflate", "packbits")),
    ("TIFF", "CMYK", {"compression": "jpeg"}),
    ("TIFF", "RGB", {"big_tiff": True}),
    ("WEBP", "RGB", {"lossless": True}),
    ("WEBP", "RGBA", {}),
    *(("BMP", mode, {}) for mode in ("1", "L", "P", "RGB")),
    *(("GIF", mode, {}) for mode in ("L", "P", "RGB")),
    ("HEIF", "RGB", {}),
    ("AVIF", "RGB", {}),
]


@pytest.mark.parametrize(("kind", "mode", "options"), KINDS)
def test_every_format_and_mode_becomes_gray_or_rgb(render, saved, halves, kind, mode, options) -> None:
    page = render(saved(halves(mode), kind, **options))
    assert page.image.mode in ("L", "RGB")
    assert page.image.size == (64, 40)
    gray = np.asarray(page.image.convert("L"))
    assert gray[:, :28].max() < 40
    assert gray[:, 36:].min() > 215


def test_a_tiled_tiff(render, make_tiff) -> None:
    pixels = bytes([*[0] * 8, *[255] * 8]) * 16
    tags = {256: 16, 257: 16, 322: 16, 323: 16, 324: 8, 325: 256, 273: None, 278: None, 279: None}
    page = render(make_tiff(tags, pixels=pixels))
    assert np.asarray(page.image).tolist() == [[0] * 8 + [255] * 8] * 16


def test_white_is_zero_in_16_bit_tiff(render, make_tiff) -> None:
    page = render(make_tiff({258: 16, 262: 0}, pixels=b"\xff\xff\0\0"))
    assert np.asarray(page.image).tolist() == [[0, 255]]


def test_12_bit_values_are_stretched(render, make_tiff) -> None:
    page = render(make_tiff({258: 16}, pixels=struct.pack("<HH", 0, 4095)))
    assert np.asarray(page.image).tolist() == [[0, 255]]


def test_old_style_jpeg_in_tiff(render, make_tiff, saved, halves) -> None:
    stream = saved(halves("RGB"), "JPEG")
    tags = {256: 64, 257: 40, 259: 6, 262: 6, 277: 3, 278: 40, 512: 1, 513: 8, 514: len(stream)}
    try:
        page = render(make_tiff(tags, pixels=stream))
    except UnreadablePage:
        return  # a clear error is right, too: not every libtiff reads them
    assert page.image.size == (64, 40)


def corners() -> Image.Image:
    """Three gray quarters and a black one, none like another."""
    picture = Image.new("L", (48, 32), 255)
    for box, value in (((0, 0, 24, 16), 0), ((24, 0, 48, 16), 90), ((0, 16, 24, 32), 170)):
        picture.paste(value, box)
    return picture


STORED = {  # EXIF orientation -> what turns the upright picture into the stored one
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def stored(orientation: int, picture: Image.Image) -> Image.Image:
    turn = STORED[orientation]
    return picture if turn is None else picture.transpose(turn)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    ("kind", "mode", "options"),
    [
        ("JPEG", "RGB", {"quality": 95}),
        ("PNG", "L", {}),
        ("WEBP", "RGB", {"lossless": True}),
        ("TIFF", "L", {}),
        ("TIFF", "RGB", {"compression": "tiff_lzw"}),
        ("TIFF", "L", {"compression": "tiff_adobe_deflate"}),
    ],
)
def test_orientation(render, saved, kind, mode, options, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = stored(orientation, corners()).convert(mode)
    extra = {"tiffinfo": {274: orientation}} if kind == "TIFF" else {"exif": exif.tobytes()}
    page = render(saved(picture, kind, **options, **extra))
    assert page.image.size == (48, 32)
    difference = np.abs(np.asarray(page.image.convert("L")).astype(int) - np.asarray(corners()).astype(int))
    assert difference[2:14, 2:22].max() < 12
    assert difference[18:30, 26:46].max() < 12
    assert difference[2:14, 26:46].max() < 12


def test_each_frame_of_a_tiff_has_its_own_orientation(render, make_tiff) -> None:
    data = make_tiff({274: 1}, {274: 6}, {274: 3})
    assert [np.asarray(render(data, n).image).tolist() for n in (1, 2, 3)] == [[[0, 255]], [[0], [255]], [[255, 0]]]


def test_every_frame_of_a_tiff(render, saved) -> None:
    frames = [Image.new("L", (30, 20), value) for value in (10, 100, 200)]
    data = saved(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    assert [render(data, n).image.getpixel((5, 5)) for n in (1, 2, 3)] == [10, 100, 200]
    with pytest.raises(UnreadablePage, match="no page 4"):
        render(data, 4)


def test_thumbnails_in_between_do_not_shift_the_pages(render, make_tiff) -> None:
    data = make_tiff({262: 1}, {254: 1}, {262: 0})
    assert np.asarray(render(data, 2).image).tolist() == [[255, 0]]


def test_a_damaged_frame_does_not_hide_the_others(render, make_tiff) -> None:
    data = make_tiff({}, {273: 1_000_000}, {})
    assert render(data, 1).image.size == (2, 1)
    with pytest.raises(UnreadablePage):
        render(data, 2)
    assert render(data, 3).image.size == (2, 1)


def test_a_huge_frame_is_refused(render, make_tiff) -> None:
    data = make_tiff({}, {256: 100_000, 257: 100_000})
    with pytest.raises(PageTooLarge, match="100000 x 100000"):
        render(data, 2)


def test_damaged_exif_is_ignored(render, saved, halves) -> None:
    data = saved(halves(), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xffgarbage")
    assert render(data).image.size == (64, 40)
    wrong = saved(halves(), "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x02\0\xff\xff\xff\x7f\0\0\0\x7f\0\0")
    assert render(wrong).image.size == (64, 40)


def printed(ink: tuple[int, ...], ground: tuple[int, ...]) -> Image.Image:
    picture = Image.new("RGBA", (200, 60), ground)
    ImageDraw.Draw(picture).rectangle((20, 20, 180, 40), fill=ink)
    return picture


def test_transparency_becomes_white(render, saved) -> None:
    page = render(saved(printed((0, 0, 0, 255), (0, 0, 0, 0)), "PNG"))
    assert (page.image.getpixel((2, 2)), page.image.getpixel((100, 30))) == ((255, 255, 255), (0, 0, 0))
    assert page.notes == ()


def test_light_print_on_transparency_does_not_vanish(render, saved) -> None:
    page = render(saved(printed((255, 255, 255, 255), (255, 255, 255, 0)), "PNG"))
    assert (page.image.getpixel((2, 2)), page.image.getpixel((100, 30))) == ((0, 0, 0), (255, 255, 255))
    assert "black" in page.notes[0]


def test_dark_print_on_white_paper_with_transparent_margins_stays_on_white(render, saved) -> None:
    picture = Image.new("RGBA", (300, 100), (0, 0, 0, 0))
    picture.paste(printed((0, 0, 0, 255), (255, 255, 255, 255)), (50, 20))
    assert render(saved(picture, "PNG")).image.getpixel((2, 2)) == (255, 255, 255)


def test_a_palette_with_a_transparent_colour(render, saved, halves) -> None:
    data = saved(halves("L").convert("P"), "PNG", transparency=0)
    assert render(data).image.mode == "RGB"
    gray = saved(halves("L"), "PNG", transparency=0)
    assert render(gray).image.mode == "RGB"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
def test_large_pictures_are_made_smaller_and_small_ones_never_larger(render, saved, halves, kind: str) -> None:
    limits = RenderLimits(max_pixels=100_000)
    page = render(saved(halves("L", (800, 600)), kind, dpi=(300, 300)), limits=limits)
    assert 90_000 < page.width * page.height <= 100_000
    assert page.width / page.height == pytest.approx(4 / 3, rel=0.01)
    assert page.dpi == pytest.approx(300 * page.width / 800, rel=0.01)
    small = render(saved(halves("L", (80, 60)), kind), limits=limits)
    assert (small.image.size, small.dpi) == ((80, 60), None)


def test_a_bilevel_picture_made_smaller_has_grays(render, saved) -> None:
    lines = Image.new("1", (900, 900), 1)
    draw = ImageDraw.Draw(lines)
    for x in range(0, 900, 6):
        draw.line((x, 0, x, 900), fill=0)
    page = render(saved(lines, "TIFF", compression="group4"), limits=RenderLimits(max_pixels=90_000))
    assert 150 < np.asarray(page.image).mean() < 250


def test_the_resolution_turns_with_the_picture(render, saved, halves) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    page = render(saved(halves(), "JPEG", dpi=(200, 220), exif=exif.tobytes()))
    assert (page.image.size, page.dpi) == ((40, 64), 220.0)
    assert render(saved(halves(), "JPEG", dpi=(1, 1))).dpi is None


def test_the_oblong_pixels_of_a_fax_are_squared(render, saved, halves) -> None:
    page = render(saved(halves("1", (64, 40)), "TIFF", compression="group4", dpi=(204, 98)))
    assert page.image.size == (64, 83)
    assert page.dpi == 204.0


def test_a_jpeg_cut_off_near_its_end_is_kept_with_a_note(render, saved) -> None:
    noise = Image.effect_noise((400, 400), 80)
    data = saved(noise, "JPEG")
    page = render(data[: len(data) * 9 // 10])
    assert page.image.size == (400, 400)
    assert "cut off" in page.notes[0]
    with pytest.raises(UnreadablePage, match="cut off"):
        render(data[: len(data) // 4])


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "BMP"])
def test_other_pictures_cut_off_are_an_error(store, saved, kind: str) -> None:
    noise = Image.effect_noise((400, 400), 80).convert("RGB")
    data = saved(noise, kind)
    media_type = f"image/{kind.lower()}"
    with pytest.raises(UnreadablePage):
        render_page(store(data[: len(data) // 2]), media_type, 1)


def test_memory_that_runs_out_is_not_the_files_fault(store, saved, halves, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(_self: object) -> None:
        raise MemoryError

    path = store(saved(halves(), "PNG"))
    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load_prepare", run_out)
    with pytest.raises(WorkerCrashed):
        render_page(path, "image/png", 1)


def test_pillows_limits_are_put_back(render, saved, halves) -> None:
    before = Image.MAX_IMAGE_PIXELS
    render(saved(halves(), "PNG"))
    assert before == Image.MAX_IMAGE_PIXELS


def test_encoding() -> None:
    page = RenderedPage(Image.new("L", (30, 20), 77), 150.0)
    png = page.encode("image/png")
    assert Image.open(io.BytesIO(png.data)).getpixel((3, 3)) == 77
    assert (png.media_type, png.width, png.height, png.dpi) == ("image/png", 30, 20, 150.0)
    assert RenderedPage(Image.new("L", (70_000, 1))).encode().media_type == "image/png"
    with pytest.raises(ValueError, match="image/jpeg or image/png"):
        page.encode("image/gif")
