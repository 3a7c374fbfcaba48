"""What a notification says of a call, and which calls may be allowed from one."""

from dataclasses import replace

import pytest

from desktop_agent.types.errors import Sentence
from desktop_agent.types.lookalikes import Lookalike
from desktop_agent.types.tool_calls import (
    CommandPart,
    CommandPreview,
    DiffPreview,
    Effect,
    NetworkPreview,
    PicturePreview,
    Risk,
    TextPreview,
)
from ui.bridge.permissions import PendingApproval
from ui.bridge.waiting_calls import WaitingDetails
from ui.shell.desktop.call_words import MAX_LENGTH, describe_call, may_allow_unseen, name_call

RUN = frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.NETWORK})


def command(line, **options):
    parts = (CommandPart(line),)
    preview = CommandPreview(line, "/work", "It may read.", **{"parts": parts, "understood": True, **options})
    return PendingApproval("1", "run_command", {"command": line}, effects=RUN, preview=preview)


def write(content="Hello", *, old_content=None):
    arguments = {"path": "a.txt", "content": content}
    preview = DiffPreview("a.txt", old_content, content)
    return PendingApproval("1", "write_file", arguments, effects=frozenset({Effect.WRITE}), preview=preview)


def may_allow(call, *, has_untrusted=False):
    return may_allow_unseen(WaitingDetails("Title", call, has_untrusted))


WITH_NAMES = "Write a file: content: Hello · path: ./a.txt"


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (command("make test"), "Run a command: make test"),
        (write(), "Write a file: a.txt · content: Hello"),
        (replace(write(), arguments={"content": "Hello", "path": "a.txt"}), "Write a file: a.txt · content: Hello"),
        (replace(write(), arguments={"content": "Hello", "path": "./a.txt"}), WITH_NAMES),
        (PendingApproval("1", "now", {}), "now"),
        (PendingApproval("1", "say", {"word": "x"}), "say: x"),
        (command("x" * (MAX_LENGTH - len("Run a command: "))), f"Run a command: {'x' * (MAX_LENGTH - 15)}"),
    ],
)
def test_a_small_call_is_whole_on_its_line(call, line):
    assert describe_call(call) == line
    assert len(line) <= MAX_LENGTH


@pytest.mark.parametrize(
    "line",
    [
        "x" * (MAX_LENGTH - len("Run a command: ") + 1),
        "make\ntest",
        "make  test",
        " make",
        "make\ttest",
        "make \u202etset",
        "make\u200b test",
        "make\u00a0test",
        "mv א ב",
        "a" * 5_000_000,
    ],
)
def test_what_is_long_hidden_or_shown_otherwise_than_it_is_is_not_whole(line):
    assert describe_call(command(line)) is None
    named = name_call(command(line))
    assert len(named) <= MAX_LENGTH
    assert "\n" not in named
    assert "\u202e" not in named
    assert not may_allow(command(line))


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": list(range(1000))},
        {str(key): "x" for key in range(1000)},
        {"to": {"all": "x"}},
        {"word": "x", "times": 2},
        {"word": "x", "to": ""},
        {"word": "x · to: y", "to": "z"},
        {"word · to": "x", "to": "z"},
    ],
)
def test_what_words_alone_do_not_say_without_doubt_is_not_whole_either(arguments):
    call = PendingApproval("1", "say", arguments)
    assert describe_call(call) is None
    assert not set("{}[]").intersection(name_call(call))
    assert not may_allow(call)


def test_a_call_without_any_doubt_may_be_allowed():
    assert may_allow(command("make test"))
    assert may_allow(write())
    assert may_allow(PendingApproval("1", "say", {"word": "x"}, effects=frozenset({Effect.WRITE})))


RISKY = CommandPart("rm -rf build", (Risk.DELETES,))


@pytest.mark.parametrize(
    "call",
    [
        command("rm -rf build", parts=(RISKY,)),
        command("sudo true", parts=(CommandPart("sudo true"), CommandPart("true", (Risk.PRIVILEGES,), depth=1))),
        command("make", parts=(CommandPart("make", lookalikes=(Lookalike("make", "а", "a"),)),)),
        command("make", understood=False),
        command("make", parts=()),
        command("pip download x", hosts=("index.example.org",)),
        command("make && make install"),
        command("cat <a"),
        command("make tеst"),
        write(old_content="what there was"),
        write("<b>bold</b>"),
        replace(command("make"), preview=None),
        replace(command("make"), preview=TextPreview("What it would do cannot be shown.")),
        replace(write(), preview=PicturePreview("a.png", b"")),
        replace(write(), preview=NetworkPreview("GET", "http://here/", "here")),
        replace(write(), effects=frozenset({Effect.WRITE, Effect.NETWORK})),
        replace(write(), preview=None, effects=frozenset({Effect.DELEGATE})),
        replace(write(), reasons=(Sentence("A rule asks."),)),
        replace(write(), untrusted_sources=("a site",)),
        replace(write(), server="Tickets"),
        replace(write(), is_in_memory=True),
    ],
)
def test_a_call_with_a_risk_or_more_to_be_read_is_decided_in_the_window(call):
    assert not may_allow(call)


def test_after_content_from_outside_nothing_is_allowed_from_a_notification():
    assert not may_allow(write(), has_untrusted=True)
