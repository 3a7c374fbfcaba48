"""Every sentence for the person ends with a mark, so that another can follow it."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_agent.types import errors
from desktop_agent.types.errors import AgentError, ProviderError, Sentence, join_remedy

ROOT = Path(__file__).parents[2]
ENDS = re.compile(r"""([.!?…]["”'»)]*|[:}]["”'»)]*)$""")
"""A closing mark, or words of somebody else: `join_remedy` adds a full stop to those where it is missing."""

# Parts of sentences: names of modes and tools, what a rule allows, why something did not start.
PARTS = {
    "desktop_agent/permissions/rule_proposals.py",
    "desktop_agent/storage/locks/conversation_locks.py",
    "desktop_agent/mcp/diagnostics.py",
    "desktop_agent/mcp/lifecycle.py",
    "desktop_agent/providers/dialects/response_stream.py",
    "desktop_agent/providers/provider.py",
    "desktop_agent/providers/transport/connection_errors.py",
    "desktop_agent/providers/transport/http_client.py",
    "desktop_agent/types/tool_calls.py",
    "desktop_agent/conversation/picture_preparation.py",
    "desktop_agent/conversation/transcript_calls.py",
    "desktop_agent/conversation/transcript_notices.py",
    "ui/bridge/permissions.py",
}
BEGINS_PART = re.compile(r"[a-z]|\{(?:mega)?pixels\} ")
REMEDY_BY_HAND = re.compile(r"\{\w*\.?_?(?:what|sentence|error)\w*\} \{[\w.]*remedy\}")


def sources() -> Iterator[tuple[str, str]]:
    for folder in ("desktop_agent", "ui"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def literals() -> Iterator[tuple[str, str]]:
    """Each literal template of a `Sentence`, after the path of its module."""
    for where, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Sentence":
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield where, first.value


def kinds() -> list[type[AgentError]]:
    classes = [member for _, member in inspect.getmembers(errors, inspect.isclass)]
    return [kind for kind in classes if issubclass(kind, AgentError)]


def test_every_sentence_ends() -> None:
    found = list(literals())
    assert len(found) > 250, "too few were read"
    # A text that begins with a small letter, or with a size, is a part of a sentence.
    whole = [(where, text) for where, text in found if where not in PARTS and not BEGINS_PART.match(text)]
    open_ones = [(where, text) for where, text in whole if not ENDS.search(text.rstrip())]
    assert open_ones == [], "put a full stop at the end, or a part of a sentence into a module of PARTS"


def test_every_remedy_is_a_whole_sentence() -> None:
    assert len(kinds()) > 25
    assert [kind.__name__ for kind in kinds() if not kind.default_remedy.endswith((".", "?"))] == []


@pytest.mark.parametrize("kind", [kind for kind in kinds() if issubclass(kind, ProviderError)])
@pytest.mark.parametrize("said", ["connection refused", "It is down.", "no key “x”", "“Closed.”"])
def test_what_a_server_said_ends_before_the_remedy(kind: type[ProviderError], said: str) -> None:
    error = kind(said)
    words = str(error.whole)
    assert words.endswith(str(error.remedy))
    assert re.search(r"[.!?…]”? $", words.removesuffix(str(error.remedy)))
    assert ".." not in words


def test_a_sentence_that_ends_gets_no_second_full_stop() -> None:
    remedy = Sentence("Do that.")
    for what in ("It is done.", "Is it?", "Wait…", "It said “No.”"):
        assert str(join_remedy(Sentence(what), remedy)) == f"{what} Do that."
    assert str(join_remedy(Sentence("It said: no"), remedy)) == "It said: no. Do that."


def test_nobody_joins_the_two_by_hand() -> None:
    by_hand = [where for where, text in sources() if REMEDY_BY_HAND.search(text)]
    assert by_hand == ["desktop_agent/types/errors.py"]
