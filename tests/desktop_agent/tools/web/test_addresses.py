"""What a model may ask for, before anybody is asked for it."""

import pytest

from desktop_agent.tools.web.addresses import MAX_ADDRESS_LENGTH, HostRefused, parse_page_address
from desktop_agent.types.errors import ToolFailed

NOBODY: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("text", "expected", "host"),
    [
        ("HTTPS://Example.ORG./A?b=C#d", "https://example.org/A?b=C", "example.org"),
        ("http://bücher.example", "http://xn--bcher-kva.example", "xn--bcher-kva.example"),
        (" http://x.example:8080/a b ", "http://x.example:8080/a%20b", "x.example"),
        ("http://0x5d.184.216.34/", "http://93.184.216.34/", "93.184.216.34"),
        ("http://[::ffff:93.184.216.34]/", "http://93.184.216.34/", "93.184.216.34"),
        ("http://[2606:4700:4700:0::1111]:81/", "http://[2606:4700:4700::1111]:81/", "2606:4700:4700::1111"),
    ],
)
def test_an_address_has_one_form(text, expected, host):
    address = parse_page_address(text, NOBODY)
    assert (address.text, address.host) == (expected, host)


@pytest.mark.parametrize(
    "text",
    [
        *(f"http://x.org/{'a' * MAX_ADDRESS_LENGTH}", "http://x.org:99999/", "javascript:alert(1)", "http://[::1/"),
        "file:///etc/passwd",
        "ftp://x.org/",
        "data:text/html,x",
        "x.org",
        "",
        "http://",
        "http://x..org/",
        "http://1.2.3.4.5/",
    ],
)
def test_only_web_addresses_are_accepted(text):
    with pytest.raises(ToolFailed, match="is not a web address"):
        parse_page_address(text, NOBODY)


@pytest.mark.parametrize(
    "text", ["http://me:secret@x.org/", "http://me@x.org/", "http://x.org\\@y.org/", "ftp://me:secret@x"]
)
def test_no_names_and_passwords(text):
    with pytest.raises(ToolFailed) as caught:
        parse_page_address(text, NOBODY)
    assert "secret" not in f"{caught.value}{caught.value.remedy}"


@pytest.mark.parametrize("port", [0, 22, 25, 110, 6667, 6000])
def test_no_ports_of_other_services(port):
    with pytest.raises(ToolFailed, match=f"Port {port} "):
        parse_page_address(f"http://x.org:{port}/", frozenset({"x.org"}))


OWN = ("localhost", "LOCALHOST.", "a.localhost", "printer.local", "metadata.google.internal", "router", "x.home.arpa")
NUMBERS = ("127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.1", "0", "169.254.169.254", "2852039166", "192.168.1.1")
SIX = ("[::1]", "[::]", "[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00:ec2::254]")


@pytest.mark.parametrize("host", [*OWN, *NUMBERS, *SIX])
def test_this_machine_and_its_networks_are_refused(host):
    with pytest.raises(HostRefused, match="is not a public server"):
        parse_page_address(f"http://{host}/", NOBODY)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", "LOCALHOST"),
        ("127.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[::1]", "[::1]"),
        ("nas.local", " nas.local. "),
    ],
)
def test_the_person_may_allow_a_host(host, allowed):
    parse_page_address(f"http://{host}:8000/", frozenset({allowed}))
    with pytest.raises(HostRefused):
        parse_page_address(f"http://{host}:8000/", frozenset({f"not-{allowed}", "*", ""}))
