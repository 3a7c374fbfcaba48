"""The name in a TLS client's first message; the messages are those of OpenSSL."""

import ssl

import pytest

from desktop_agent.network.tunnels import IncompleteHello, parse_server_name


def hello(name: str | None) -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def in_records(data: bytes, size: int) -> bytes:
    body = data[5:]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + len(each).to_bytes(2) + each for each in pieces)


def test_the_name_is_found_however_it_is_cut() -> None:
    whole = hello("Allowed.Example")
    assert parse_server_name(whole) == "allowed.example"
    assert parse_server_name(whole + b"\x17more") == "allowed.example"
    assert parse_server_name(in_records(whole, 7)) == "allowed.example"
    for end in range(len(whole)):
        with pytest.raises(IncompleteHello):
            parse_server_name(whole[:end])


def test_there_may_be_none() -> None:
    assert parse_server_name(hello(None)) is None


def test_what_is_no_first_message_is_refused() -> None:
    whole = bytearray(hello("allowed.example"))
    place = whole.index(b"allowed")
    # The record's version, the message's kind, and in the extension the name's kind and two lengths.
    for at, value in ((1, 2), (5, 2), (place - 3, 9), (place - 1, 255), (place - 5, 255)):
        broken = whole.copy()
        broken[at] = value
        with pytest.raises(ValueError, match=r"client|version"):
            parse_server_name(bytes(broken))
    for data in (b"\x16\x03\x01\x00\x00", b"\x16\x03\x01\x00\x01\x01\x17\x03\x01\x00\x01\x01"):
        with pytest.raises(ValueError, match=r"empty|no handshake"):
            parse_server_name(data)
    with pytest.raises(ValueError, match="too long"):
        parse_server_name(in_records(b"\x16\x03\x01\x00\x00\x01\xff\xff\xff" + bytes(70_000), 16_000))


def test_two_names_are_refused() -> None:
    whole = hello("allowed.example")
    start = whole.index(b"allowed") - 9
    extension = whole[start : start + 9 + len("allowed.example")]
    assert extension.startswith(b"\x00\x00")
    doubled = bytearray(whole[:start] + extension + whole[start:])
    # Before the extensions stands how long they are; the lengths of record and message stand in front.
    ends = next(at for at in range(44, start) if at + 2 + int.from_bytes(whole[at : at + 2]) == len(whole))
    for at, size in ((3, 2), (6, 3), (ends, 2)):
        doubled[at : at + size] = (int.from_bytes(doubled[at : at + size]) + len(extension)).to_bytes(size)
    with pytest.raises(ValueError, match="more than once"):
        parse_server_name(bytes(doubled))
