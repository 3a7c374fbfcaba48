"""Which responses are text, and in which encoding."""

import pytest

from desktop_agent.tools.web.addresses import parse_page_address
from desktop_agent.tools.web.pages import Page, decode_page
from desktop_agent.types.errors import ToolFailed


def page(data: bytes, content_type: str) -> Page:
    return Page(parse_page_address("http://site.example/", frozenset()), content_type, data)


@pytest.mark.parametrize(
    ("content_type", "data", "text"),
    [
        ("text/html; charset=ISO-8859-1", b"caf\xe9 \x80", "café €"),
        ('text/html; charset="KOI8-R"', "привет".encode("koi8-r"), "привет"),
        ("text/html", "<meta charset='windows-1251'>привет".encode("cp1251"), "<meta charset='windows-1251'>привет"),
        ("text/html; charset=utf-8", "<meta charset=latin1>é".encode(), "<meta charset=latin1>é"),
        ("text/html; charset=latin1", b"\xef\xbb\xbf\xc3\xa9", "é"),
        ("text/html; charset=utf-8", b"\xff\xfeh\0i\0", "hi"),
        ("text/html; charset=nonsense", "é".encode(), "é"),
        ("text/html", b"\x93caf\xe9\x94", "“café”"),
        ("text/html", b'<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">\x83e', None),
        ("text/html", b'<meta charset="utf-16">\xc3\xa9', '<meta charset="utf-16">é'),
        ("application/xhtml+xml", b'<?xml version="1.0" encoding="iso-8859-2"?>\xb1', None),
        ("text/html; charset=utf-7", b"+ADw-script+AD4-", "+ADw-script+AD4-"),
        ("text/html; charset=unicode_escape", b"\\x41", "\\x41"),
        ("text/html; charset=rot13", b"uryyb", "uryyb"),
        ("text/html; charset=zlib", b"x", "x"),
    ],
)
def test_encodings(content_type, data, text):
    kind, decoded = decode_page(page(data, content_type))
    assert kind == "html"
    assert decoded == text if text is not None else decoded.endswith(("テ", "ą"))


@pytest.mark.parametrize(
    ("content_type", "data", "kind"),
    [
        ("text/html", b"x", "html"),
        ("TEXT/HTML;charset=x", b"x", "html"),
        ("text/plain", b"<html>shown as it is", "text"),
        ("text/markdown", b"# x", "text"),
        ("application/json", b"{}", "text"),
        ("application/ld+json", b"{}", "text"),
        ("application/rss+xml", b"<rss/>", "text"),
        ("", b" <!-- a --> <!DOCTYPE html><p>x", "html"),
        ("", b"just words", "text"),
        ("", b"<!---->" * 1000 + b"<p>", "text"),
        ("", b"<!-- a --> <!-- --> <html>", "html"),
        ("nonsense", b"just words", "text"),
        ("application/octet-stream", b"# README", "text"),
    ],
)
def test_kinds(content_type, data, kind):
    assert decode_page(page(data, content_type))[0] == kind


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        ("image/png", b"\x89PNG"),
        ("application/pdf", b"%PDF-1.7"),
        ("application/zip", b"PK"),
        ("application/octet-stream", b"\x7fELF\0\0"),
        ("", b"\xff\xd8\xff\xe0"),
        ("text/plain", b"a\0b"),
        ("video/mp4", b"x"),
    ],
)
def test_what_is_no_text_is_said(content_type, data):
    with pytest.raises(ToolFailed, match=f"not text: .* size {len(data)} bytes"):
        decode_page(page(data, content_type))
