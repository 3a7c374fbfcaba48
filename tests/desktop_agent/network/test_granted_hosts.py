"""Which hosts a name grants, and which it does not."""

import pytest

from desktop_agent.network.hosts import (
    GrantedHost,
    HostAndPort,
    normalise_granted_hosts,
    parse_granted_host,
    parse_host_and_port,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-b.test", GrantedHost("a-b.test")),
        (" A-B.test. ", GrantedHost("a-b.test")),
        ("example.org:8443", GrantedHost("example.org", 8443)),
        ("*.example.org", GrantedHost("*.example.org")),
        ("*.example.org:443", GrantedHost("*.example.org", 443)),
        ("bücher.example", GrantedHost("xn--bcher-kva.example")),
        ("localhost", GrantedHost("localhost")),
        ("a_b.example", GrantedHost("a_b.example")),
        ("127.1", GrantedHost("127.0.0.1")),
        ("::1", GrantedHost("::1")),
        ("[::1]:80", GrantedHost("::1", 80)),
        ("::ffff:10.0.0.1", GrantedHost("10.0.0.1")),
    ],
)
def test_names_of_hosts(text: str, expected: GrantedHost) -> None:
    assert parse_granted_host(text) == expected
    assert parse_granted_host(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "*", "*.", "*.org", "*.127.0.0.1", "*.[::1]", "a.*.org", "**.example.org", "x*.example.org"),
        *(
            "https://a-b.test",
            "a-b.test/simple",
            "me@a-b.test",
            "a-b.test:0",
            "a-b.test:99999",
            "a-b.test:",
            ":443",
        ),
        *("a b", "a,b", "a\nb", "-a.example", "a-.example", "a..example", ".example", "1.2.3.4.5", "256.1.1.1"),
        *(
            "fe80::1%eth0",
            "[a-b.test]",
            "[::1",
            "::g",
            "a%41",
            "ｅｖｉｌ／.example",
            "a" * 64 + ".example",
            "a." * 127 + "ab",
        ),
    ],
)
def test_what_names_no_host_is_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="Name hosts as in"):
        parse_granted_host(text)


def test_each_once_in_one_form() -> None:
    assert normalise_granted_hosts(["A-B.test", "a-b.test.", "[::1]:80"]) == ["a-b.test", "[::1]:80"]


@pytest.mark.parametrize(
    ("granted", "destination", "expected"),
    [
        ("example.org", "example.org:443", True),
        ("example.org", "EXAMPLE.org.:80", True),
        ("example.org", "www.example.org:443", False),
        ("example.org", "example.org.evil.example:443", False),
        ("example.org", "notexample.org:443", False),
        ("example.org:8443", "example.org:8443", True),
        ("example.org:8443", "example.org:443", False),
        ("*.example.org", "a.example.org:443", True),
        ("*.example.org", "a.b.example.org:443", True),
        ("*.example.org", "example.org:443", False),
        ("*.example.org", "notexample.org:443", False),
        ("127.0.0.1", "2130706433:80", True),
        ("127.0.0.1", "[::ffff:127.0.0.1]:80", True),
        ("127.0.0.1", "localhost:80", False),
        ("127.0.0.1", "127.0.0.2:80", False),
        ("localhost", "127.0.0.1:80", False),
        ("::1", "[0:0::1]:80", True),
    ],
)
def test_what_a_grant_covers(granted: str, destination: str, expected: bool) -> None:
    found = parse_host_and_port(destination)
    assert found is not None
    assert parse_granted_host(granted).covers(found) is expected


@pytest.mark.parametrize(
    "text", ["", "a", "a:", "a:0", "a b:1", "a@b:1", "a/b:1", "bücher.example:1", "1.2.3.400:1", "[::1]"]
)
def test_what_a_client_may_not_ask_for(text: str) -> None:
    assert parse_host_and_port(text) is None


def test_a_usual_port() -> None:
    assert parse_host_and_port("a", 80) == HostAndPort("a", 80)
    assert str(HostAndPort("::1", 80)) == "[::1]:80"


@pytest.mark.parametrize(
    ("granted", "host", "expected"),
    [
        ("localhost", "localhost", True),
        ("nas", "nas", True),
        ("printer.local", "printer.local", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("::1", "::1", True),
        ("intranet.example.com", "intranet.example.com", False),
        ("*.corp.internal", "git.corp.internal", True),
        ("*.example.com", "localhost", False),
    ],
)
def test_what_a_person_sees_to_be_private(granted: str, host: str, expected: bool) -> None:
    assert parse_granted_host(granted).is_plainly_private(host) is expected
