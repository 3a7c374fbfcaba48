"""Links of the program's own kind, and files that other programs hand over."""

import os
import socket
from pathlib import Path
from urllib.parse import quote

import pytest

from desktop_agent.types.errors import WrongUse
from tests.fakes.pdf import pdf_of
from ui.bridge.desktop.links import (
    MAX_LINK_LENGTH,
    MAX_TEXT_BYTES,
    ConversationLink,
    FileTarget,
    NewConversationLink,
    check_file,
    conversation_link,
    parse_target,
    read_text_file,
)

ID = "0123456789abcdef0123456789abcdef"


def refusal(call, *values):
    with pytest.raises(WrongUse) as caught:
        call(*values)
    words = str(caught.value.sentence)
    assert words.endswith(".")
    assert "\n" not in words
    assert len(words) < 200
    return words


@pytest.mark.parametrize(
    ("link", "prompt"),
    [
        ("desktop-agent://new", ""),
        ("desktop-agent://new/", ""),
        ("DESKTOP-AGENT://new?prompt=a+b%2Bc", "a b+c"),
        ("desktop-agent://new?prompt=one%0D%0Atwo%09three", "one\ntwo\tthree"),
        ("desktop-agent://new?prompt=%E4%BD%A0%E5%A5%BD%20%F0%9F%91%A9%E2%80%8D%F0%9F%94%AC", "你好 👩‍🔬"),
        ("desktop-agent://new?prompt=grüße", "grüße"),
        ("desktop-agent://new?prompt=--help", "--help"),
    ],
)
def test_a_link_begins_a_conversation(link, prompt):
    assert parse_target(link) == NewConversationLink(prompt)


def test_a_copied_link_leads_back():
    assert parse_target(conversation_link(ID)) == ConversationLink(ID)
    assert parse_target(conversation_link(ID, "m-1_a")) == ConversationLink(ID, "m-1_a")


@pytest.mark.parametrize(
    "link",
    [
        "desktop-agent:",
        "desktop-agent:new?prompt=a",
        "desktop-agent:///etc/passwd",
        "desktop-agent://send?prompt=a",
        "desktop-agent://new/else?prompt=a",
        "desktop-agent://new?prompt=a&send=true",
        "desktop-agent://new?prompt=a&prompt=b",
        "desktop-agent://new?prompt=%ff",
        "desktop-agent://new#prompt",
        "desktop-agent://[new",
        "desktop-agent://user@new?prompt=a",
        f"desktop-agent://conversation/{ID}/../x",
        "desktop-agent://conversation/..%2F..%2Fx",
        "desktop-agent://conversation/",
        f"desktop-agent://conversation/{ID}?at=../x",
        f"desktop-agent://conversation/{ID}?at=",
        f"desktop-agent://conversation/{ID}?then=run",
        f"desktop-agent://conversation/{'a' * 65}",
        "desktop-agent://conversation/found:codex:1",
    ],
)
def test_what_no_link_asks_for_is_not_guessed(link):
    assert "does not know this link" in refusal(parse_target, link)


@pytest.mark.parametrize("hidden", ["\0", "\x1b[2J", "\x7f", "\u202e", "\u2066", "\u200b", "\U000e0041", "\u2028"])
def test_a_link_says_nothing_that_cannot_be_seen(hidden):
    written = f"desktop-agent://new?prompt=a{quote(hidden)}b"
    assert "cannot be seen" in refusal(parse_target, written)
    assert "cannot be seen" in refusal(parse_target, f"desktop-agent://new?prompt=a{hidden}b")


def test_a_link_has_an_end():
    link = "desktop-agent://new?prompt="
    longest = link + "a" * (MAX_LINK_LENGTH - len(link))
    assert parse_target(longest) == NewConversationLink(longest.removeprefix(link))
    assert "too long" in refusal(parse_target, longest + "a")


@pytest.mark.parametrize("address", ["https://example.org/", "javascript:alert(1)", "data:text/plain,a", "mailto:a@b"])
def test_links_of_others_are_for_others(address):
    assert address in refusal(parse_target, address)


def test_an_address_in_a_sentence_is_short_and_hides_nothing():
    assert "⟨U+202E⟩" in refusal(parse_target, f"https://\u202e{'a' * 9_000}")


def test_a_file_is_named_by_its_path_or_address(tmp_path):
    name = os.fsdecode(b"a b\xff#?.txt")
    path = tmp_path / name
    address = f"file://{quote(os.fsencode(path))}"
    assert parse_target(str(path)) == parse_target(address) == FileTarget(path)
    assert parse_target(address.replace("file://", "file://localhost")) == FileTarget(path)
    assert "not a file on this computer" in refusal(parse_target, "file://elsewhere/etc/passwd")
    assert "not a file on this computer" in refusal(parse_target, "file:///etc%00/passwd")
    assert "not a file on this computer" in refusal(parse_target, "file:")


def test_only_regular_files_are_read(tmp_path, monkeypatch):
    pipe, channel = tmp_path / "pipe", tmp_path / "channel"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)
        listener.bind("channel")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    for path in (pipe, channel, tmp_path / "zero.png", Path("/dev/tty")):
        assert "a device or a channel" in refusal(check_file, path)
        assert "a device or a channel" in refusal(read_text_file, path)
    assert "a folder" in refusal(check_file, tmp_path)
    assert "no file" in refusal(check_file, tmp_path / "none\u202egnp.txt")
    assert "⟨U+202E⟩" in refusal(check_file, tmp_path / "none\u202egnp.txt")
    assert "no file" in refusal(check_file, tmp_path / ("a" * 5_000))
    (tmp_path / "loop").symlink_to("loop")
    assert "no file" in refusal(check_file, tmp_path / "loop")


def test_a_text_is_read_as_what_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    for data in ("Grüße\r\n你好".encode(), "Grüße\r\n你好".encode("utf-8-sig"), "Grüße\r\n你好".encode("utf-16")):
        path.write_bytes(data)
        assert read_text_file(path) == "Grüße\n你好"
    for data in (b"\x7fELF\0\0", b"\xff\xd8\xff", "Grüße".encode("latin-1")):
        path.write_bytes(data)
        assert "neither a picture nor a text" in refusal(read_text_file, path)
    path.write_bytes(pdf_of("Hello there"))
    assert read_text_file(path) == "[Page 1]\nHello there"
    path.write_bytes(b"%PDF-1.7\n%\xb5\xed")
    assert "“notes.txt” is a PDF that cannot be read." in refusal(read_text_file, path)
    with path.open("wb") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    assert "larger than 10 MB" in refusal(read_text_file, path)
