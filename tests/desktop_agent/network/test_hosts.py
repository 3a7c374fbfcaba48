"""A host has one form, however it is written; and some ports are not the web's."""

import pytest

from desktop_agent.network.hosts import BLOCKED_PORTS, canonical_host, parse_web_url, url_host

LOOPBACK = ("127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0x7f000001", "017700000001", "127.0.0.1.")


@pytest.mark.parametrize("written", [*LOOPBACK, "0X7F.0.0.0x1", "[::ffff:127.0.0.1]", "::ffff:7f00:1", "127.0x0.1"])
def test_an_address_is_known_in_all_its_forms(written):
    assert canonical_host(written) == "127.0.0.1"


@pytest.mark.parametrize(
    "written",
    ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "08.1", "a.b.1", "x.0x7f", "", ".", "::g"],
)
def test_what_ends_in_a_number_and_is_no_address_is_no_host(written):
    assert canonical_host(written) is None


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("Example.ORG", "example.org"),
        ("example.org.", "example.org"),
        ("xn--80ak6aa92e.com", "xn--80ak6aa92e.com"),
        ("1.example.org", "1.example.org"),
        ("0x7f.example", "0x7f.example"),
        ("[2606:4700:4700:0:0:0:0:1111]", "2606:4700:4700::1111"),
    ],
)
def test_a_name_is_lower_case_without_a_dot_at_its_end(written, form):
    assert canonical_host(written) == form


@pytest.mark.parametrize(
    ("url", "host"), [("http://аррӏе.com/", "xn--80ak6aa92e.com"), ("http://BÜCHER.example", "xn--bcher-kva.example")]
)
def test_names_go_out_in_punycode(url, host):
    parsed = parse_web_url(url)
    assert parsed is not None
    assert url_host(parsed) == host


@pytest.mark.parametrize(
    "url",
    [
        "http://ｅxample.com/",
        "http://１２７.０.０.１/",
        "http://%31%32%37.0.0.1/",
        "http:\\\\x.org",
        "http://x\t.org/",
        "//x.org",
    ],
)
def test_what_readers_disagree_about_is_no_address(url):
    assert parse_web_url(url) is None


def test_ports_that_browsers_refuse():
    assert {25, 6667, 22, 110, 6000, 10080} <= BLOCKED_PORTS
    assert not {80, 443, 8080, 8000, 3000} & BLOCKED_PORTS
