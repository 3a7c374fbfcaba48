"""Addresses of pages: whose they are, and which may be opened."""

import pytest

from ui.approval.untrusted_text import parse_address


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("https://example.org/a?b=c", "example.org"),
        ("https://EXAMPLE.org", "example.org"),
        ("http://127.0.0.1:8080/done", "127.0.0.1"),
        ("http://localhost/done", "localhost"),
        ("http://[::1]:9/", "::1"),
        ("https://xn--exmple-cua.org/", "xn--exmple-cua.org"),
    ],
)
def test_what_may_be_opened(text, host):
    address = parse_address(text)
    assert address.is_safe
    assert address.host == host
    assert text.lower()[address.host_start :].startswith(host)


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org",
        "http://127.0.0.1.example.org/",
        "http://localhost.example.org/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https:///path",
        "https://example.org\\@evil.org/",
        "https://exa mple.org/",
        "https://example.org/\u202egpj",
        "https://example.org:99999/",
        "https://[::1/",
        "",
    ],
)
def test_what_is_never_opened(text):
    assert not parse_address(text).is_safe


def test_what_looks_like_a_host_before_the_host_is_named():
    address = parse_address("https://accounts.google.com@evil.example/sign-in")
    assert address.host == "evil.example"
    assert address.user == "accounts.google.com"
    assert address.text[address.host_start :].startswith("evil.example/")


def test_a_host_of_look_alikes_is_written_as_computers_write_it():
    address = parse_address("https://аррӏе.com/")
    assert address.ascii_host.startswith("xn--")
    assert address.is_safe
