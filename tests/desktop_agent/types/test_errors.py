"""Every error has a sentence and a remedy for the person."""

import inspect
import string

import pytest

from desktop_agent.types import errors
from desktop_agent.types.engine_events import ErrorOccurred
from desktop_agent.types.errors import AgentError, ImageRefused, ProviderError, RemedyAction, Sentence

ALL = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, AgentError)]


def test_the_tree_was_found() -> None:
    assert len(ALL) > 25


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_each_error_says_what_and_what_to_do(kind: type[AgentError]) -> None:
    error = kind("it broke")
    for sentence in (str(error), str(error.remedy)):
        assert sentence
        assert sentence[-1] in ".!?" or "it broke" in sentence
    assert "it broke" in str(error)
    assert kind.kind == kind.kind.lower()
    assert kind.__name__ in (errors.__doc__ or "")


def test_templates_name_only_values_that_are_given() -> None:
    for kind in ALL:
        if issubclass(kind, ProviderError):
            names = {name for _, name, _, _ in string.Formatter().parse(kind.template) if name}
            assert names == {"message"}


def test_braces_in_a_servers_words_do_no_harm() -> None:
    assert "{0} {x}" in str(ProviderError("{0} {x}"))
    assert str(Sentence("no values {}")) == "no values {}"


def test_pictures_are_named_where_a_name_is_known() -> None:
    assert "“cat.png”" in str(ImageRefused.unreadable("cat.png"))
    assert "20 MB" in str(ImageRefused.too_large("cat.png", "20 MB"))


def test_an_event_carries_the_servers_words_and_the_remedy() -> None:
    event = ErrorOccurred.of(errors.RateLimited("slow down", status=429, retry_after=3))
    assert (event.kind, event.message, event.action) == ("rate_limit", "slow down", RemedyAction.RETRY)
    assert str(event.sentence) == "The model server reported: slow down."


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{x} and {y}", "1 and {y}"),
        ("{x.__class__} {x!r} {x:>999999999} {0} {} {", "{x.__class__} {x!r} {x:>999999999} {0} {} {"),
        ("{x}}", "1}"),
    ],
)
def test_a_sentence_of_a_strangers_file_is_only_text(template: str, filled: str) -> None:
    assert str(Sentence(template, {"x": "1"})) == filled


def test_a_sentence_that_would_be_endless_is_cut() -> None:
    sentence = Sentence("ha")
    for _ in range(100):
        sentence = Sentence("{a}" * 20, {"a": sentence})
    assert len(str(sentence)) == 1_000_001
