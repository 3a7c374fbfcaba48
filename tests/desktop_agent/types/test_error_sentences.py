"""What errors say ends like a sentence: with a full stop, or another end mark."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_agent.types import errors
from desktop_agent.types.errors import AgentError, ProviderError

ROOT = Path(errors.__file__).parents[2]
END_MARKS = (".", "!", "?", "…")


def is_ended(words: str) -> bool:
    """Also where a value ends it: what that is, no source says."""
    return words.rstrip("\n”\"')").endswith((*END_MARKS, "}"))


def literals(node: ast.expr) -> Iterator[str]:
    """The words that an argument may be."""
    match node:
        case ast.Constant(value=str(words)):
            yield words
        case ast.Call(func=ast.Name("Sentence"), args=[first, *_]):
            yield from literals(first)
        case ast.IfExp():
            yield from (*literals(node.body), *literals(node.orelse))
        case _:
            pass


def said(source: str, kinds: frozenset[str]) -> Iterator[str]:
    """The sentences and remedies in a source that are given to errors of these kinds, or to a class by itself."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(name)) if name in kinds:
                given = (*node.args[:2], *(each.value for each in node.keywords if each.arg == "remedy"))
                yield from (words for each in given for words in literals(each))
            case ast.AnnAssign(target=ast.Name("default_remedy"), value=ast.expr() as value):
                yield from literals(value)
            case ast.Assign(targets=[ast.Name(name)], value=value) if name.lower().endswith("remedy"):
                yield from literals(value)
            case _:
                pass


def subclasses(kind: type[AgentError]) -> Iterator[type[AgentError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from subclasses(each)


PROVIDER_ERRORS = tuple(subclasses(ProviderError))
# What is given to an error of a server is the end of its sentence, and gets its full stop there.
OTHER_ERRORS = frozenset(each.__name__ for each in subclasses(AgentError) if each not in PROVIDER_ERRORS)


@pytest.mark.parametrize("kind", PROVIDER_ERRORS)
@pytest.mark.parametrize(("message", "end"), [("slow down", "slow down."), ("Slow down!", "Slow down!")])
def test_an_error_of_a_server_ends_its_sentence(kind: type[ProviderError], message: str, end: str) -> None:
    error = kind(message)
    assert str(error).endswith(f": {end}")
    assert str(error.whole) == f"{error} {error.remedy}"
    assert error.message == message


def test_every_sentence_in_the_sources_is_ended() -> None:
    found, wrong = 0, list[str]()
    for path in (*ROOT.glob("desktop_agent/**/*.py"), *ROOT.glob("ui/**/*.py")):
        for words in said(path.read_text(encoding="utf-8"), OTHER_ERRORS):
            found += 1
            # What begins with a small letter is a part that another sentence takes in.
            is_part = words[:1].islower() or path.name == "diagnostics.py"
            if words and not is_part and not is_ended(words):
                wrong.append(f"{path}: {words}")
    assert wrong == []
    assert found > 400


def test_the_look_finds_what_lacks_its_end() -> None:
    source = """
raise StorageFailed("It is gone")
raise StorageFailed(Sentence("“{name}” is gone", values), remedy="Look again")
class Gone(StorageFailed):
    default_remedy: ClassVar[str] = "Write it anew"
_REMEDY = Sentence("Ask somebody")
"""
    assert {words for words in said(source, OTHER_ERRORS) if not is_ended(words)} == {
        "It is gone",
        "“{name}” is gone",
        "Look again",
        "Write it anew",
        "Ask somebody",
    }
