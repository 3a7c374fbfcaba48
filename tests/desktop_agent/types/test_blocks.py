from io import BytesIO

import pytest
from PIL import Image

from desktop_agent.types.blocks import read_image_size


def encoded(form: str, **options: object) -> bytes:
    buffer = BytesIO()
    Image.new("RGBA" if options.pop("alpha", False) else "RGB", (321, 123), "red").save(buffer, form, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        encoded("PNG"),
        encoded("GIF"),
        encoded("JPEG"),
        encoded("JPEG", progressive=True),
        encoded("JPEG", comment=b"c" * 70, exif=b"Exif\0\0" + bytes(500)),
        encoded("WEBP"),
        encoded("WEBP", lossless=True),
        encoded("WEBP", alpha=True),
        encoded("WEBP", exif=b"Exif\0\0" + bytes(50)),
    ],
)
def test_the_size_is_what_pillow_says(data: bytes) -> None:
    assert read_image_size(data) == (321, 123) == Image.open(BytesIO(data)).size


def test_fill_bytes_before_a_marker_are_skipped() -> None:
    data = encoded("JPEG")
    assert read_image_size(data[:2] + b"\xff\xff" + data[2:]) == (321, 123)


@pytest.mark.parametrize("form", ["PNG", "GIF", "JPEG", "WEBP"])
def test_a_header_cut_anywhere_says_nothing_wrong(form: str) -> None:
    data = encoded(form)
    for end in range(40):
        assert read_image_size(data[:end]) in {None, (321, 123)}


@pytest.mark.parametrize("data", [b"", b"GIF89a\0\0\0\0", b"\xff\xd8\xff\xd8\xff", b"RIFF....WEBPVP9 ", b"text"])
def test_nonsense_has_no_size(data: bytes) -> None:
    assert read_image_size(data) is None
