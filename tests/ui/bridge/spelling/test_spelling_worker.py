"""What is wrong in which dictionary, asked in a real worker process."""

import pytest

from desktop_agent.processes.worker import Worker
from desktop_agent.processes.worker_process import WorkerLimits
from tests.fakes.dictionaries import ENGLISH, GERMAN, RUSSIAN, write_dictionary
from ui.bridge.spelling.spelling_worker import SpellingAnswer


@pytest.fixture
def ask():
    limits = WorkerLimits(memory=1_000_000_000, seconds=20.0)
    worker = Worker("ui.bridge.spelling.spelling_worker:answer", list[SpellingAnswer], limits, timeout=30.0)
    yield worker.ask
    worker.close()


def test_a_word_that_no_dictionary_knows_is_wrong(ask, tmp_path):
    english = write_dictionary(tmp_path / "ünï", "en_US", ENGLISH)
    answer = ask([english], ["hello", "helo", "cats", "catz", "don't", "Hello", "HELLO"], "")
    assert answer == SpellingAnswer(["helo", "catz"], [])


def test_a_word_is_right_if_one_of_several_knows_it(ask, tmp_path):
    dictionaries = [
        write_dictionary(tmp_path, "en_US", ENGLISH),
        write_dictionary(tmp_path, "de_DE", GERMAN, "ISO8859-1"),
    ]
    assert ask(dictionaries, ["cat", "Katze", "über", "Kazte", "żółw"], "").wrong == ["Kazte", "żółw"]
    assert ask(dictionaries[:1], ["cat", "Katze"], "").wrong == ["Katze"]


def test_a_word_in_another_script_is_not_judged(ask, tmp_path):
    english, russian = write_dictionary(tmp_path, "en_US", ENGLISH), write_dictionary(tmp_path, "ru_RU", RUSSIAN)
    assert ask([english], ["кошкa", "helo"], "").wrong == ["helo"]
    assert ask([english, russian], ["кошка", "кошкз", "helo"], "").wrong == ["кошкз", "helo"]


def test_suggestions_are_of_all_dictionaries_in_turn(ask, tmp_path):
    dictionaries = [write_dictionary(tmp_path, "en_US", ENGLISH), write_dictionary(tmp_path, "de_DE", GERMAN)]
    assert ask(dictionaries, [], "helo").suggestions[0] == "hello"
    assert "hier" in ask(dictionaries, [], "hiere").suggestions[:2]


def test_at_most_five_are_suggested(ask, tmp_path):
    english = write_dictionary(tmp_path, "en_US", tuple(f"{letter}at" for letter in "bcfhmprs"))
    assert len(ask([english], [], "xat").suggestions) == 5


def test_a_dictionary_that_cannot_be_read_is_left_out(ask, tmp_path):
    english = write_dictionary(tmp_path, "en_US", ENGLISH)
    assert ask([str(tmp_path / "gone"), english], ["cat", "helo"], "").wrong == ["helo"]
