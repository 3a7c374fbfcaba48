"""Texts and queries are split into words in the same way."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.storage.search.query_plan import MatchPlan, match_of
from desktop_agent.storage.search.text_analysis import TOKENIZER, Term, fold, parse_query, to_index_words, token_pattern
from tests.frame.examples import examples

SYNTAX = "\"'*()^:-+{}[]. AND OR NOT NEAR/2 \0"


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Café", "cafe"),
        ("Cafe\u0301", "cafe"),
        ("STRASSE Straße", "strasse strasse"),
        ("ＡＢＣ １", "abc 1"),
        ("ﾃﾞｰﾀ", "データ"),
        ("한국어", "한국어"),
        ("Ελλάδα", "ελλαδα"),
        ("שָׁלוֹם", "שלום"),
        ("हिन्दी", "हिन्दी"),
        ("İstanbul", "istanbul"),
    ],
)
def test_case_width_and_diacritics_are_folded(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a getUserName b", "a getusername b get user name"),
        ("HTTPServer2", "httpserver2 http server2"),
        ("URLs and IDs", "urls and ids"),
        ("snake_case a/b.py", "snake_case a/b.py"),
        ("aB" * 40, "ab" * 40),
        ("aB" * 40 + " éaB", "ab" * 40 + " eab a b"),
        ("a" * 63 + "B", "a" * 63 + "b " + "a" * 63 + " b"),
    ],
)
def test_names_are_there_whole_and_in_parts(text: str, words: str) -> None:
    assert to_index_words(text) == words


def test_scripts_without_spaces_become_pairs() -> None:
    assert to_index_words("全文検索 in 日").split() == ["全文", "文検", "検索", "索", "in", "日"]
    assert to_index_words("検索engine").split() == ["検索", "索", "engine"]


def test_a_query_ends_in_what_may_go_on() -> None:
    assert parse_query("foo get_us") == (Term(("foo",)), Term(("get", "us"), is_prefix=True))
    assert parse_query("foo ") == (Term(("foo",)),)
    assert parse_query('say "Foo bar" x"') == (Term(("say",)), Term(("foo", "bar")), Term(("x",)))
    assert parse_query("“全文検索”")[0].tokens == ["全文", "文検", "検索"]
    assert parse_query("字abc")[0].tokens == ["字", "abc"]


@pytest.mark.parametrize(
    ("typed", "humps"),
    [
        ("UserName ", ("user", "name")),
        ("HTTPServer() ", ("http", "server")),
        ("userNam", ("user", "nam")),
        ("userNa", ()),
        ("username ", ()),
        ("self.userName ", ()),
        ("éUserName ", ()),
        ("aB" * 40 + " ", ()),
        ('"UserName"', ()),
    ],
)
def test_a_name_in_a_query_is_looked_for_in_its_parts_too(typed: str, humps: tuple[str, ...]) -> None:
    assert parse_query(typed)[0].humps == humps


def test_a_query_is_bounded() -> None:
    terms = parse_query("word" + "_x" * 5000 + " a" * 5000)
    assert len(terms) <= 16
    assert all(len(term.pieces) <= 64 for term in terms)


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE VIRTUAL TABLE words USING fts5(text, calls, attachments, tokenize="{TOKENIZER}")')
        yield connection


@given(text=st.text(max_size=30) | st.text(alphabet=SYNTAX + "ab字検é_", max_size=30), end=st.sampled_from(["", " "]))
@settings(max_examples=examples(400), deadline=None)
def test_whatever_is_typed_is_found_where_it_stands(index: sqlite3.Connection, text: str, end: str) -> None:
    text = text.replace("\0", " ").encode("utf-8", "replace").decode()
    terms = parse_query(text + end)
    with closing(index.cursor()) as cursor:
        cursor.execute("DELETE FROM words")
        cursor.execute("INSERT INTO words VALUES (?, '', '')", (to_index_words(text),))
        if terms:
            plan = MatchPlan.of(terms, frozenset())
            assert cursor.execute("SELECT 1 FROM words WHERE words MATCH ?", (plan.match,)).fetchall() == [(1,)]


@given(
    text=st.text(alphabet="aB字検éδ_1 .\u0301", max_size=12),
    typed=st.text(alphabet="aB字検éδ_1 .", min_size=1, max_size=4),
    end=st.sampled_from(["", " "]),
)
@settings(max_examples=examples(1000), deadline=None)
def test_a_term_is_found_in_the_words_of_a_text_as_the_index_finds_it(
    index: sqlite3.Connection, text: str, typed: str, end: str
) -> None:
    text = text.replace("\0", " ")
    with closing(index.cursor()) as cursor:
        cursor.execute("DELETE FROM words")
        cursor.execute("INSERT INTO words VALUES (?, '', '')", (to_index_words(text),))
        for term in parse_query(typed + end):
            is_there = bool(cursor.execute("SELECT 1 FROM words WHERE words MATCH ?", (match_of(term),)).fetchall())
            assert bool(token_pattern(term).search(to_index_words(text))) == is_there


@pytest.mark.parametrize("size", [70_000])
@pytest.mark.parametrize("unit", ["a", "aB", "A1b", "字", "e\u0301", "_", "aA "])
def test_data_without_words_takes_no_longer(unit: str, size: int) -> None:
    assert len(to_index_words(unit * (size // len(unit)))) >= size // len(unit)
