"""Real pictures, made by Pillow, damaged by hand."""

import io
import struct
import zlib

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from desktop_agent.conversation import picture_preparation
from desktop_agent.conversation.picture_preparation import import_picture, import_picture_async
from desktop_agent.conversation.picture_processing import has_metadata
from desktop_agent.types.blocks import detect_media_type
from desktop_agent.types.errors import ImageRefused

GPS = 0x8825
ORIENTATION = 0x0112


def noise(width: int = 60, height: int = 40, mode: str = "RGB") -> Image.Image:
    return Image.effect_noise((width, height), 80).convert(mode)


def saved(image: Image.Image, format_: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, format_, **options)  # type: ignore[arg-type]
    return out.getvalue()


def exif(orientation: int = 1) -> Image.Exif:
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    tags[0x0110] = "SecretCam 3000"
    tags.get_ifd(GPS)[1] = "N"
    tags.get_ifd(GPS)[2] = (52.0, 31.0, 12.0)
    return tags


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_picture_that_needs_nothing_keeps_its_bytes(format_: str, mode: str) -> None:
    data = saved(noise(mode=mode), format_)
    # The name says nothing: content decides.
    taken = import_picture(data, "holiday.exe")
    assert taken.data is data
    assert (taken.media_type, taken.width, taken.height) == (f"image/{format_.lower()}", 60, 40)
    assert taken.notes == ()


@pytest.mark.parametrize("format_", ["JPEG", "PNG", "WEBP"])
def test_exif_and_place_are_removed(format_: str) -> None:
    data = saved(noise(), format_, exif=exif())
    assert b"SecretCam" in data
    taken = import_picture(data, "a.jpg")
    assert b"SecretCam" not in taken.data
    assert not opened(taken.data).getexif()
    assert taken.media_type == f"image/{format_.lower()}"
    assert "Hidden information" in str(taken.notes[0])
    assert not has_metadata(taken.data, taken.media_type)


def test_comments_texts_and_appended_files_are_removed() -> None:
    text = PngInfo()
    text.add_text("Author", "SecretAuthor")
    text.add_itxt("XML:com.adobe.xmp", "<x>SecretXmp</x>")
    cases = [
        saved(noise(), "JPEG", comment="SecretComment"),
        saved(noise(), "JPEG") + b"ftypmp42 Secret film",
        saved(noise(), "PNG", pnginfo=text),
        saved(noise(), "PNG") + b"Secret tail",
        saved(noise(mode="P"), "GIF", comment=b"SecretComment"),
        saved(noise(mode="P"), "GIF") + b"Secret tail",
        saved(noise(), "WEBP", xmp=b"<x>SecretXmp</x>"),
        saved(noise(), "WEBP") + b"Secret tail",
    ]
    for data in cases:
        assert b"Secret" in data
        taken = import_picture(data)
        assert b"Secret" not in taken.data
        assert (taken.width, taken.height) == (60, 40)
        assert not has_metadata(taken.data, taken.media_type)


def test_the_pixels_of_a_cleaned_png_and_its_colour_profile_stay() -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    image = noise(mode="RGBA")
    image.putalpha(77)
    taken = import_picture(saved(image, "PNG", exif=exif(), icc_profile=profile))
    assert opened(taken.data).tobytes() == image.tobytes()
    assert opened(taken.data).info["icc_profile"] == profile


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_turned_photo_is_set_upright(orientation: int) -> None:
    image = Image.new("RGB", (60, 40), "blue")
    image.paste((255, 0, 0), (0, 0, 30, 20))
    taken = import_picture(saved(image, "JPEG", quality=95, exif=exif(orientation)))
    assert (taken.width, taken.height) == ((60, 40) if orientation < 5 else (40, 60))
    assert any("upright" in str(note) for note in taken.notes)
    # Where the stored top left corner comes to lie (EXIF 2.32, 4.6.5).
    right = orientation in {2, 3, 6, 7}
    bottom = orientation in {3, 4, 7, 8}
    corner = (taken.width - 5 if right else 5, taken.height - 5 if bottom else 5)
    red, _, blue = opened(taken.data).getpixel(corner)  # type: ignore[misc]
    assert red > 200 > 50 > blue


@pytest.mark.parametrize(("size", "scaled"), [((300, 100), (100, 33)), ((100, 300), (33, 100)), ((5000, 2), (100, 1))])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "I;16", "CMYK"])
def test_a_large_picture_is_scaled_and_the_note_says_why(
    size: tuple[int, int], scaled: tuple[int, int], mode: str
) -> None:
    data = saved(Image.new(mode, size), "JPEG" if mode == "CMYK" else "PNG")
    taken = import_picture(data, max_edge=100)
    assert (taken.width, taken.height) == opened(taken.data).size == scaled
    (note,) = taken.notes
    assert str(note).startswith(f"Scaled from {size[0]} x {size[1]} to {scaled[0]} x {scaled[1]} pixels")


def test_a_picture_at_the_limit_is_not_scaled() -> None:
    assert import_picture(saved(noise(100, 50), "PNG"), max_edge=100).notes == ()


@pytest.mark.parametrize("format_", ["BMP", "TIFF", "AVIF"])
def test_other_formats_become_png(format_: str) -> None:
    image = noise()
    taken = import_picture(saved(image, format_))
    assert (taken.media_type, detect_media_type(taken.data)) == ("image/png", "image/png")
    assert str(taken.notes[0]) == f"Converted from {format_} to PNG."
    if format_ != "AVIF":
        assert opened(taken.data).tobytes() == image.tobytes()


@pytest.mark.parametrize(("mode", "level"), [("F", 1000.0), ("I", 1000), ("I;16", 65535)])
def test_deep_grey_is_scaled_down_not_clipped(mode: str, level: float) -> None:
    image = Image.new(mode, (4, 2))
    image.putpixel((0, 0), level)
    image.putpixel((1, 0), level / 2 if mode == "F" else int(level / 2))
    taken = import_picture(saved(image, "TIFF"))
    assert opened(taken.data).getpixel((0, 0)) == 255
    assert opened(taken.data).getpixel((1, 0)) in {127, 128}


@pytest.mark.parametrize("format_", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_frame_is_kept_as_png(format_: str) -> None:
    frames = [Image.new("RGB", (20, 10), colour) for colour in ("red", "lime", "blue")]
    data = saved(frames[0], format_, save_all=True, append_images=frames[1:], lossless=True)
    taken = import_picture(data)
    assert taken.media_type == "image/png"
    assert not getattr(opened(taken.data), "is_animated", False)
    assert opened(taken.data).convert("RGB").getpixel((5, 5)) == (255, 0, 0)
    assert "first of several frames" in str(taken.notes[0])


def test_a_phone_picture_with_a_second_one_inside_stays_a_jpeg() -> None:
    data = saved(noise(), "MPO", save_all=True, append_images=[noise()])
    taken = import_picture(data)
    assert taken.media_type == "image/jpeg"
    assert len(taken.data) < len(data)


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_truncated_picture_is_refused(format_: str, part: float) -> None:
    data = saved(noise(200, 150), format_)
    with pytest.raises(ImageRefused) as refused:
        import_picture(data[: int(len(data) * part)], "cut.jpg")
    assert "“cut.jpg”" in str(refused.value)


def test_a_damaged_body_is_refused() -> None:
    data = bytearray(saved(noise(200, 150), "PNG"))
    data[len(data) // 2 : len(data) // 2 + 200] = b"\xaa" * 200
    with pytest.raises(ImageRefused, match="damaged"):
        import_picture(bytes(data))


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"<svg xmlns='x'/>", b"%PDF-1.7", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"\0" * 99]
)
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(ImageRefused, match="is not a PNG, JPEG, GIF or WebP image"):
        import_picture(data, "a.png")


def test_a_magic_number_alone_is_a_damaged_picture() -> None:
    with pytest.raises(ImageRefused, match="damaged"):
        import_picture(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("edge", [10_001, 12_000, 30_000, 2**31 - 1])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(edge: int) -> None:
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", edge, edge, 1, 0, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + header + png_chunk(b"IDAT", zlib.compress(b"\0")) + png_chunk(b"IEND", b"")
    with pytest.raises(ImageRefused, match="larger than 100 megapixels"):
        import_picture(data)


def test_a_file_over_the_limit_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_preparation, "MAX_FILE_BYTES", 2_000_000)
    with pytest.raises(ImageRefused, match="larger than 2 MB"):
        import_picture(b"\x89PNG\r\n\x1a\n" + b"\0" * 2_000_000)


def test_damaged_exif_does_not_spoil_a_good_picture() -> None:
    plain = saved(noise(), "JPEG")
    broken = b"Exif\0\0MM\0\x2a\xff\xff\xff\xff Secret"
    data = plain[:2] + b"\xff\xe1" + struct.pack(">H", len(broken) + 2) + broken + plain[2:]
    taken = import_picture(data)
    assert b"Secret" not in taken.data
    assert (taken.width, taken.height) == (60, 40)


async def test_the_same_in_a_thread() -> None:
    data = saved(noise(), "PNG")
    assert (await import_picture_async(data)).data is data
    with pytest.raises(ImageRefused):
        await import_picture_async(b"hello")


def test_bytes_do_not_show_in_the_representation() -> None:
    assert "IHDR" not in repr(import_picture(saved(noise(), "PNG")))
