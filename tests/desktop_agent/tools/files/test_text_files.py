import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.tools.files.text_files import NotText, TextFormat, decode_text, encode_text

TEXT = "Grüße\nzwei 🎈\n"


@pytest.mark.parametrize(
    ("data", "encoding", "mark"),
    [
        (TEXT.encode(), "utf-8", b""),
        (codecs.BOM_UTF8 + TEXT.encode(), "utf-8", codecs.BOM_UTF8),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), "utf-16-le", codecs.BOM_UTF16_LE),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "utf-16-be", codecs.BOM_UTF16_BE),
        (codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"), "utf-32-le", codecs.BOM_UTF32_LE),
    ],
)
def test_the_encoding_is_found_and_written_back_byte_for_byte(data: bytes, encoding: str, mark: bytes) -> None:
    file = decode_text(data)
    assert (file.text, file.format.encoding, file.format.byte_order_mark) == (TEXT, encoding, mark)
    assert encode_text(file.text, file.format) == (data, file.format)


def test_what_is_not_utf_8_is_latin_1() -> None:
    file = decode_text("Grüße".encode("latin-1"))
    assert (file.text, file.format.encoding) == ("Grüße", "latin-1")
    assert "guess" in file.format.title


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"text with a \0 inside",
        bytes(range(1, 256)) * 4,
        codecs.BOM_UTF16_LE + b"a",
    ],
)
def test_binary_data_is_no_text(data: bytes) -> None:
    with pytest.raises(NotText):
        decode_text(data)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends_are_kept(newline: str) -> None:
    file = decode_text(newline.join(["one", "two", ""]).encode())
    assert file.text == "one\ntwo\n"
    assert encode_text("three\r\nfour\n", file.format)[0] == f"three{newline}four{newline}".encode()


def test_mixed_line_ends_leave_the_new_text_as_it_is() -> None:
    file = decode_text(b"one\r\ntwo\n")
    assert file.format.newline is None
    assert encode_text("a\nb\r\n", file.format)[0] == b"a\nb\r\n"


def test_text_that_the_old_encoding_cannot_hold_becomes_utf_8() -> None:
    data, used = encode_text("日本\n", TextFormat("latin-1", newline="\r\n"))
    assert data == "日本\r\n".encode()
    assert used.encoding == "utf-8"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n")))
def test_any_text_survives(text: str) -> None:
    # A text that begins with the mark itself is read as having one.
    data, _ = encode_text(text.lstrip("\ufeff"), None)
    assert decode_text(data).text == text.lstrip("\ufeff")
