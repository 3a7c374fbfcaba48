"""Features are found by the field's words: the list of those that are not found may only get shorter."""

import pytest

from tests.frame.budgets import ROOT
from tests.frame.stranger import Answer, Question, answer, answers, holds, questions, table


@pytest.fixture(scope="module")
def found() -> list[Answer]:
    return answers()


def test_what_was_found_once_stays_found(found: list[Answer]) -> None:
    lost = [each for each in found if not each.is_found and not each.question.open]
    assert not lost, "not found by its words any more:\n" + table(lost)


def test_what_is_found_is_marked_no_more(found: list[Answer]) -> None:
    marked = [each.question.ask for each in found if each.is_found and each.question.open]
    assert not marked, "found by now: take `open = true` away in tests/frame/stranger_questions.toml"


def test_every_question_has_a_place() -> None:
    asked = questions()
    assert len(asked) == 40
    missing = {folder for question in asked for folder in question.folder if not (ROOT / folder).is_dir()}
    assert not missing
    assert all(question.words and question.folder for question in asked)


@pytest.mark.parametrize(
    ("name", "word", "expected"),
    [
        ("RetryPolicy", "retry", True),
        ("retries_left", "retry", True),
        ("retrying", "retry", False),
        ("HTTPCache", "cache", True),
        ("caches", "cache", True),
        ("matches", "match", True),
        ("FindBarHit", "find_bar", True),
        ("bar_find", "find_bar", False),
        ("Settings", "setting", True),
        ("ssl", "s", False),
    ],
)
def test_a_word_in_a_name(name: str, word: str, expected: bool) -> None:
    assert holds(name, word) is expected


@pytest.mark.parametrize(
    ("top", "expected"), [("a/b", True), ("a/b/c", True), ("a", True), ("a/d", False), ("ab", False), ("a/b c", False)]
)
def test_the_place_with_the_most_is_right(top: str, expected: bool) -> None:
    question = Question("Where?", ("word",), ("a/b",))
    assert answer(question, {top: ["word", "word"], "e": ["word"]}).is_found is expected


def test_two_places_with_as_many_are_no_answer() -> None:
    question = Question("Where?", ("word",), ("a",))
    assert not answer(question, {"a": ["word"], "e": ["word"]}).is_found
    assert not answer(question, {"a": ["other"]}).is_found
