"""The index finds what a plain scan of the texts finds, for any query and any kind of look-up."""

import random
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.storage.search import index_reader
from desktop_agent.storage.search.index_file import INDEX_NAME, IndexWriter
from desktop_agent.storage.search.index_reader import IndexReader
from desktop_agent.storage.search.outbox import ConversationRow
from desktop_agent.storage.search.query_plan import is_short_beginning
from desktop_agent.storage.search.searchable_text import searchable_text
from desktop_agent.storage.search.text_analysis import Term, parse_query, to_index_words
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.search import SearchQuery
from tests.frame.examples import examples

CONVERSATIONS = 450
"""Fewer than the limit of ranking, so that all matches are found."""
APART = 700
"""The distance between the numbers of two messages, which spreads them over 38 word tables."""
MAX_TITLES = 200
WORDS = (
    *("the", "tables", "table", "tab", "text", "t", "to", "sort", "sorted", "so", "crème", "Straße", "x", "xylophone"),
    *(
        "getUserName",
        "userName",
        "HTTPServer2",
        "my_file.py",
        "src/my_file",
        "a.b",
        "__init__",
        "m0012",
        "検索",
        "全文検索",
    ),
    *("検", "中", "日本 語", "c'est", "co-op", "C++", "naïve", "Δelta"),
)


def words(chance: random.Random, most: int) -> str:
    # As in texts, a few words are in most of them, and most words in a few.
    picked = (WORDS[min(int(chance.expovariate(0.13)), len(WORDS) - 1)] for _ in range(chance.randint(0, most)))
    return "".join(word + chance.choice((" ", " ", " ", "_", ". ", "")) for word in picked)


class Scan:
    """The same texts, without an index."""

    def __init__(self) -> None:
        chance = random.Random(1)
        self.titles = [words(chance, 5) for _ in range(CONVERSATIONS)]
        self.messages = [self._message(words(chance, 9), words(chance, 3)) for _ in range(CONVERSATIONS)]

    @staticmethod
    def _message(text: str, argument: str) -> Message:
        return Message(
            role=Role.ASSISTANT, blocks=(Text(text=text), ToolUse(id="1", name="run", input={"with": argument}))
        )

    def write(self, path: Path) -> None:
        writer = IndexWriter(path)
        writer.begin("token", 0, 0)
        for number, (title, message) in enumerate(zip(self.titles, self.messages, strict=True), 1):
            writer.put_conversation(ConversationRow(number, str(number), title, None, None, number, False))
            writer.add_message(number * APART, number, number, message)
        writer.close()

    def with_message(self, terms: tuple[Term, ...]) -> set[int]:
        needed = list(terms)
        if is_short_beginning(terms[-1]) and (len(terms) > 1 or len(terms[-1].pieces) > 1):
            # Beside other words, a short last word is optional.
            needed[-1:] = [Term(terms[-1].pieces[:-1])] if len(terms[-1].pieces) > 1 else []
        return set(self._numbers(lambda number: list(searchable_text(self.messages[number]).parts), needed))

    def with_title(self, terms: tuple[Term, ...]) -> set[int]:
        return set(sorted(self._numbers(lambda number: [self.titles[number]], list(terms)))[-MAX_TITLES:])

    @staticmethod
    def _numbers(texts: Callable[[int], list[str]], terms: list[Term]) -> Iterator[int]:
        for number in range(CONVERSATIONS):
            tokens = [re.findall(r"[a-z0-9\u0080-\U0010ffff]+", to_index_words(text)) for text in texts(number)]
            if all(any(stands_in(term, tokens_of_part) for tokens_of_part in tokens) for term in terms):
                yield number + 1


def stands_in(term: Term, tokens: list[str]) -> bool:
    return any(is_phrase_of(spelling, tokens, is_open=term.is_open) for spelling in term.spellings)


def is_phrase_of(words: list[str], tokens: list[str], *, is_open: bool) -> bool:
    *first, last = words
    return any(
        tokens[start : start + len(first)] == first
        and (tokens[start + len(first)].startswith(last) if is_open else tokens[start + len(first)] == last)
        for start in range(len(tokens) - len(first))
    )


@pytest.fixture(scope="module")
def scan() -> Scan:
    return Scan()


@pytest.fixture(scope="module")
def index(scan: Scan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / INDEX_NAME
    scan.write(path)
    return path


def assert_found(index: Path, scan: Scan, typed: str) -> None:
    terms = parse_query(typed)
    with closing(IndexReader(index)) as reader:
        result = reader.find(SearchQuery(typed), CONVERSATIONS, lambda: False)
    by_message = {conversation.number for conversation in result.conversations if conversation.count}
    by_title = {conversation.number for conversation in result.conversations if conversation.number not in by_message}
    if not terms:
        assert not result.conversations
        return
    expected = scan.with_message(terms)
    assert by_message == expected
    assert by_title == scan.with_title(terms) - expected


@pytest.mark.parametrize(
    "typed", [*"tsxcmd中検2", "to", "ta", "th", "table t", "the t", "x t", "my_f", "my_file p", "run t"]
)
def test_short_beginnings_are_found_in_each_title(index: Path, scan: Scan, typed: str) -> None:
    assert_found(index, scan, typed)


QUERY_WORDS = st.sampled_from(WORDS) | st.builds(
    lambda word, end: word[:end], st.sampled_from(WORDS), st.integers(1, 4)
)


@given(
    typed=st.lists(
        QUERY_WORDS | st.builds(lambda a, b: f'"{a} {b}"', QUERY_WORDS, QUERY_WORDS), min_size=1, max_size=3
    ),
    joint=st.sampled_from(" _"),
    end=st.sampled_from(["", " "]),
)
@settings(max_examples=examples(300), deadline=None)
def test_what_is_found_is_what_a_scan_finds(index: Path, scan: Scan, typed: list[str], joint: str, end: str) -> None:
    assert_found(index, scan, joint.join(typed) + end)


def test_titles_are_asked_of_the_index_where_few_begin_so(
    index: Path, scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_reader, "_TITLES_TRIED", 10)
    monkeypatch.setattr(index_reader, "_MIN_TITLES_BEGUN", 11)
    for typed in ("t", "x", "table t", "my_f"):
        assert_found(index, scan, typed)


def test_when_the_time_is_over_what_the_newer_tables_have_is_found(index: Path, scan: Scan) -> None:
    expected = sorted(scan.with_message(parse_query("the ")))
    with closing(IndexReader(index)) as reader:
        cut = reader.find(SearchQuery("the "), CONVERSATIONS, lambda: False, seconds=0)
        complete = reader.find(SearchQuery("the "), CONVERSATIONS, lambda: False, seconds=600)
        unmatched = reader.find(SearchQuery("quetzal "), CONVERSATIONS, lambda: False, seconds=0)
    newest = sorted(conversation.number for conversation in cut.conversations if conversation.count)
    assert cut.is_cut
    assert 0 < len(newest) < len(expected)
    assert newest == expected[-len(newest) :]
    assert not complete.is_cut
    assert sorted(conversation.number for conversation in complete.conversations if conversation.count) == expected
    assert not unmatched.is_cut
    assert not unmatched.conversations
