"""Search finds messages, tool calls and attachments by words as people type them."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from desktop_agent.storage.connection import connect
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.search import conversation_search, index_file, index_reader, searchable_text
from desktop_agent.storage.search.index_file import INDEX_NAME
from desktop_agent.storage.search.index_reader import IndexReader, SearchStopped
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Image, Json, Summary, Text, Thinking, ToolResult, ToolUse, UrlSource
from desktop_agent.types.messages import Message, Role, now
from desktop_agent.types.search import ConversationHits, SearchChoices, SearchPlace, SearchQuery, SearchResults

PICTURE = Image(source=UrlSource(url="https://example.org/1.png"), name="holiday_beach.png")
TALK = (
    Message.user("How do I call getUserName in src/my_file.py? Crème brûlée. snake_case"),
    Message(
        role=Role.ASSISTANT,
        model="model-1",
        blocks=[
            Thinking(text="secretthought", provider="p"),
            Text(text="これは全文検索エンジンです。Straße 中"),
            ToolUse(id="1", name="read_file", input={"path": "/notes/todo_list.txt", "lines": [12345]}),
        ],
    ),
    Message.tool_results(
        [ToolResult(tool_use_id="1", content=[Text(text="contents"), Json(value={"owner": "mrs\nsmith"}), PICTURE])]
    ),
    Message(role=Role.SYSTEM, blocks=[Summary(text="summarised", first_kept_id="x")]),
)


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


async def search(store: Store, query: SearchQuery | str, limit: int = 30) -> SearchResults:
    """Index everything, then search."""
    assert await store.search.index_all()
    results = await store.search.find(SearchQuery(query) if isinstance(query, str) else query, limit)
    assert results is not None
    assert results.is_complete
    return results


async def conversations(store: Store, query: SearchQuery | str) -> list[str]:
    return [conversation.title for conversation in (await search(store, query)).conversations]


async def hits(store: Store, query: SearchQuery | str) -> list[tuple[str, str, list[str]]]:
    return [
        (hit.role.value, hit.place.value, marked(hit.snippet, hit.matches))
        for conversation in (await search(store, query)).conversations
        for hit in conversation.hits
    ]


def marked(text: str, matches: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[begin:end] for begin, end in matches]


async def talk(store: Store, *messages: Message, title: str = "A talk", model: str | None = None) -> str:
    conversation = await store.create_conversation(title=title, model=model)
    await store.commit(conversation.id, *messages)
    return conversation.id


@pytest.mark.parametrize(
    ("typed", "role", "place", "marks"),
    [
        ("getusername", "user", "text", ["getUserName"]),
        ("getUserNa", "user", "text", ["getUserNa"]),
        ("user name", "user", "text", ["User", "Name"]),
        ("UserName", "user", "text", ["UserName"]),
        ("UserNam", "user", "text", ["UserNam"]),
        ("userName()", "user", "text", ["UserName"]),
        ("call UserName", "user", "text", ["call", "UserName"]),
        ("UserName call ", "user", "text", ["call", "UserName"]),
        ("my_file.py", "user", "text", ["my_file.py"]),
        ("src/my", "user", "text", ["src/my"]),
        ("case ", "user", "text", ["case"]),
        ("creme BRULEE", "user", "text", ["Crème", "brûlée"]),
        ("crème", "user", "text", ["Crème"]),
        ('"call getUserName in"', "user", "text", ["call getUserName in"]),
        ("how cal", "user", "text", ["How", "cal"]),
        ("全文検索", "assistant", "text", ["全文検索"]),
        ("検索", "assistant", "text", ["検索"]),
        ("索", "assistant", "text", ["索"]),
        ("中 これ", "assistant", "text", ["これ", "中"]),
        ("ｴﾝｼﾞﾝ", "assistant", "text", ["エンジン"]),
        ("strasse", "assistant", "text", ["Straße"]),
        ("read_file", "assistant", "calls", ["read_file"]),
        ("todo_list", "assistant", "calls", ["todo_list"]),
        ("12345", "assistant", "calls", ["12345"]),
        ("contents owner", "tool", "calls", ["contents", "owner"]),
        ("smith", "tool", "calls", ["smith"]),
        ("beach", "tool", "attachments", ["beach"]),
    ],
)
async def test_found(store: Store, typed: str, role: str, place: str, marks: list[str]) -> None:
    await talk(store, *TALK)
    assert await hits(store, typed) == [(role, place, marks)]


@pytest.mark.parametrize(
    "typed",
    ["secretthought", "summarised", "nsmith", "username ", '"user call"', "全検", '"', '") OR *', "-", "🙂", "zz"],
)
async def test_not_found(store: Store, typed: str) -> None:
    await talk(store, *TALK)
    assert await conversations(store, typed) == []


async def test_a_title_is_found_and_marked(store: Store) -> None:
    id_ = await talk(store, *TALK, title="Über das Zügeln, 引っ越し")
    results = await search(store, "zugeln")
    assert results.conversations == (ConversationHits(id_, "Über das Zügeln, 引っ越し", ((9, 15),)),)
    assert await conversations(store, "引っ") != []
    await store.update_conversation(id_, title="Another")
    assert await conversations(store, "zugeln") == []
    assert await conversations(store, "another") == ["Another"]


async def test_the_title_counts_most_then_what_was_said_then_results(store: Store) -> None:
    filler = "Other words of a long text that say nothing. " * 3
    await talk(
        store, Message.tool_results([ToolResult(tool_use_id="1", content=[Text(text="docker")])]), title="result"
    )
    await talk(store, Message.user("docker"), title="said")
    await talk(store, Message.user("hello"), title="docker")
    await talk(store, Message.user(filler), title="nothing")
    assert await conversations(store, "docker") == ["docker", "said", "result"]


async def test_of_equal_hits_the_newer_comes_first(store: Store) -> None:
    for title, days in (("old", 400), ("new", 1), ("older", 4000)):
        await talk(store, Message.user("same").model_copy(update={"created_at": now() - timedelta(days)}), title=title)
    assert await conversations(store, "same") == ["new", "old", "older"]


async def test_hits_are_grouped_and_counted(store: Store) -> None:
    id_ = await talk(store, *(Message.user(f"word {number}") for number in range(5)), title="many")
    results = await search(store, "word")
    assert [(len(conversation.hits), conversation.hit_count) for conversation in results.conversations] == [(3, 5)]
    within = await search(store, SearchQuery("word", conversation_id=id_))
    assert [len(conversation.hits) for conversation in within.conversations] == [5]
    (message,) = (await search(store, '"word 4"')).conversations[0].hits
    assert message.message_id == (await store.load(id_)).messages[4].id


async def test_one_long_conversation_does_not_hide_the_others(store: Store) -> None:
    await talk(store, Message.user("word"), title="short")
    await talk(store, *(Message.user(f"word {number}") for number in range(60)), title="long")
    results = await search(store, "word")
    assert {conversation.title: conversation.hit_count for conversation in results.conversations} == {
        "long": 50,
        "short": 1,
    }
    assert results.has_more


async def test_filters(store: Store) -> None:
    old = Message.user("word").model_copy(update={"created_at": datetime(2020, 1, 1, tzinfo=UTC)})
    await talk(store, old, title="old")
    await talk(store, Message.user_with_blocks([Text(text="word"), PICTURE]), title="picture", model="model-2")
    answer = Message.assistant("word").model_copy(update={"model": "model-1"})
    await talk(store, answer, title="answer", model="model-2")
    call = ToolUse(id="1", name="word", input={})
    conversation = await store.create_conversation(title="call", workspace="/work")
    await store.commit(conversation.id, Message(role=Role.ASSISTANT, blocks=[call]))
    moment = datetime(2021, 1, 1, tzinfo=UTC)
    expected = {
        SearchQuery("word", until=moment): ["old"],
        SearchQuery("word", since=moment, roles=frozenset({Role.USER})): ["picture"],
        SearchQuery("word", has_image=True): ["picture"],
        SearchQuery("word", has_tool_call=True): ["call"],
        SearchQuery("word", workspace="/work"): ["call"],
        SearchQuery("word", model="model-1"): ["answer"],
        SearchQuery("word", model="model-2"): ["picture"],
        SearchQuery("word", places=frozenset({SearchPlace.CALLS})): ["call"],
        SearchQuery("wo", places=frozenset({SearchPlace.CALLS})): ["call"],
        SearchQuery("old", places=frozenset({SearchPlace.TEXT})): [],
        SearchQuery("old", places=frozenset({SearchPlace.TITLE})): ["old"],
        SearchQuery("old", since=now() + timedelta(1)): [],
        SearchQuery(has_image=True): ["picture"],
        SearchQuery(): ["call", "answer", "picture", "old"],
    }
    assert {query: await conversations(store, query) for query in expected} == expected


async def test_a_note_of_the_program_is_known_as_such_and_said_by_nobody(store: Store) -> None:
    note = Message.user("harbour files were undone").model_copy(update={"injected_by": "undo"})
    await talk(store, Message.user("the harbour"), note, Message.assistant("harbour"))
    for query in (SearchQuery("harbour"), SearchQuery()):
        (conversation,) = (await search(store, query)).conversations
        notes = {hit.snippet: hit.is_note for hit in conversation.hits}
        assert notes == {"the harbour": False, note.text: True, "harbour": False}
    by_the_person = replace(query, roles=frozenset({Role.USER}))
    (conversation,) = (await search(store, by_the_person)).conversations
    assert [hit.snippet for hit in conversation.hits] == ["the harbour"]


async def test_a_search_is_narrowed_to_a_folder_and_a_tag(store: Store) -> None:
    ids = [await talk(store, Message.user("word"), title=title) for title in ("top", "outer", "inner", "archived")]
    outer = await store.folders.create("Outer")
    inner = await store.folders.create("Inner", parent=outer.id)
    await store.placements.change(ids[1:2], folder=outer.id)
    await store.placements.change(ids[2:], folder=inner.id, add_tags=["later"])
    await store.placements.change(ids[3:], archived=True)
    await store.placements.change(ids[:1], add_tags=["later"])
    expected = {
        SearchQuery("word", folder=outer.id): ["archived", "inner", "outer"],
        SearchQuery(folder=inner.id): ["archived", "inner"],
        SearchQuery("word", tag="Later"): ["archived", "inner", "top"],
        SearchQuery("wo", folder=outer.id, tag="later"): ["archived", "inner"],
        SearchQuery("top", tag="later"): ["top"],
        SearchQuery("top", folder=outer.id): [],
        SearchQuery("word", folder="gone"): [],
        SearchQuery("word"): ["archived", "inner", "outer", "top"],
    }
    assert {query: await conversations(store, query) for query in expected} == expected
    choices = await store.search.choices()
    assert choices.tags == ("later",)
    assert choices.folders == ((outer.id, ("Outer",)), (inner.id, ("Outer", "Inner")))


async def test_the_trash_is_not_searched_and_what_is_restored_is(store: Store) -> None:
    id_ = await talk(store, *TALK)
    assert await conversations(store, "snake_case") == ["A talk"]
    await store.delete_conversation(id_)
    # Also before the index has been updated.
    results = await store.search.find(SearchQuery("snake_case"))
    assert results is not None
    assert results.conversations == ()
    assert await conversations(store, "talk") == await conversations(store, "snake_case") == []
    await store.restore_conversation(id_)
    assert await conversations(store, "snake_case") == ["A talk"]


async def test_a_replaced_message_is_found_by_its_new_words_alone(store: Store) -> None:
    message = Message.user("before")
    id_ = await talk(store, message)
    assert await conversations(store, "before ") == ["A talk"]
    await store.commit(id_, message.model_copy(update={"blocks": (Text(text="after"),)}))
    assert await conversations(store, "before ") == []
    assert await conversations(store, "after ") == ["A talk"]


async def test_a_snippet_is_one_line_around_the_match(store: Store) -> None:
    await talk(
        store, Message.user("One line.\n" * 100 + "Here\n\tis the needle,  \n and more.\n" + "Another line.\n" * 100)
    )
    (hit,) = (await search(store, '"the needle and"')).conversations[0].hits
    assert hit.snippet.startswith("…")
    assert " Here is the needle, and more. Another line." in hit.snippet
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) < 210
    assert marked(hit.snippet, hit.matches) == ["the needle, and"]


async def test_a_snippet_marks_what_is_left_out_where_a_long_text_is_kept_in_two(store: Store) -> None:
    # The first piece ends before the space nearest to this place.
    begin = "hay " * 4_090
    ending = begin[: 16_384 - 20] + " stork heron and then much more: " + "straw " * 100
    await talk(store, Message.user(ending))
    (hit,) = (await search(store, "stork ")).conversations[0].hits
    assert (hit.snippet[0], hit.snippet[-1]) == ("…", "…")
    (hit,) = (await search(store, "then ")).conversations[0].hits
    assert (hit.snippet[0], hit.snippet[-1]) == ("…", "…")
    await talk(store, Message.user(f"{begin} and a crane"))
    (hit,) = (await search(store, "crane ")).conversations[0].hits
    assert hit.snippet.endswith(" and a crane")


@pytest.mark.parametrize("cut", [2, 9, 18])
async def test_a_phrase_is_shown_in_a_long_text_wherever_it_is_kept_in_two(store: Store, cut: int) -> None:
    start = 16_384 - cut
    hay = "hay " * (start // 4) + "x" * (start % 4)
    await talk(store, Message.user(f"{hay} a lonely needle in much {hay}"))
    conversation = (await search(store, '"a lonely needle in much"')).conversations[0]
    (hit,) = conversation.hits
    assert marked(hit.snippet, hit.matches) == ["a lonely needle in much"]


@pytest.mark.parametrize(
    ("text", "typed", "marks"),
    [
        ("½ … the ﬁnal straße … and more", "final", ["ﬁnal"]),
        ("½ … the ﬁnal straße … and more", "strasse more", ["straße", "more"]),
        ("… 部分…… 检索 …", "检索", ["检索"]),
        ("étּ … needle", "needle", ["needle"]),
        ("…" * 500 + " ﬁ", "fi", ["ﬁ"]),
        ("\u1100\u1161 needle", "needle", ["needle"]),
    ],
)
async def test_what_is_longer_when_it_is_folded_does_not_move_a_match(
    store: Store, text: str, typed: str, marks: list[str]
) -> None:
    await talk(store, Message.user(text))
    assert await hits(store, typed) == [("user", "text", marks)]


async def test_a_snippet_has_no_signs_of_markdown_but_those_that_were_looked_for(store: Store) -> None:
    text = "# Sorting\n\n- Use **`sorted()`** or [the docs](https://docs.example/sorting) with `__lt__`."
    await talk(store, Message.assistant(text))
    (hit,) = (await search(store, "sorted")).conversations[0].hits
    assert hit.snippet == "Sorting Use sorted() or the docs with __lt__."
    assert marked(hit.snippet, hit.matches) == ["sorted"]
    (hit,) = (await search(store, "example")).conversations[0].hits
    assert "https://docs.example/sorting" in hit.snippet
    (hit,) = (await search(store, "")).conversations[0].hits
    assert hit.snippet == "Sorting Use sorted() or the docs with __lt__."


async def test_what_calls_wrote_into_files_is_found_by_itself(store: Store) -> None:
    def call(name: str, **arguments: str) -> Message:
        return Message(role=Role.ASSISTANT, blocks=(ToolUse(id=name, name=name, input=dict(arguments)),))

    await talk(store, call("write_file", path="a.py", content="needle = 1"), title="Written")
    await talk(store, call("files__edit_file", path="b.py", new_text="needle"), title="Edited")
    await talk(store, call("write_file"), title="Wrote nothing")
    await talk(store, call("search_text", pattern="needle"), title="Looked for")
    await talk(store, Message.user("needle in write_file"), title="Said")
    in_files = frozenset({SearchPlace.FILES})
    assert sorted(await conversations(store, SearchQuery("needle", places=in_files))) == ["Edited", "Written"]
    assert sorted(await conversations(store, SearchQuery("", places=in_files))) == ["Edited", "Written"]
    for typed in ("needle", ""):
        assert {place for _, place, _ in await hits(store, SearchQuery(typed, places=in_files))} == {"files"}
    in_calls = SearchQuery("needle", places=frozenset({SearchPlace.CALLS}))
    assert sorted(await conversations(store, in_calls)) == ["Edited", "Looked for", "Written"]
    assert len(await conversations(store, "needle")) == 4
    assert await hits(store, "a.py") == [("assistant", "files", ["a.py"])]


async def test_only_whole_words_are_marked(store: Store) -> None:
    await talk(store, Message.user("Because users use it, in useState, re_use."))
    assert await hits(store, "use ") == [("user", "text", ["use", "use", "use"])]
    assert await hits(store, "use") == [("user", "text", ["use", "use", "use", "use"])]


async def test_a_long_message_is_found_to_its_end_and_shown_at_the_place(store: Store) -> None:
    text = "first " + "word " * 60_000 + "theLastName of all"
    await talk(store, Message.user(text))
    assert await hits(store, "first last ") == [("user", "text", ["first"])]
    assert await hits(store, "LastName") == [("user", "text", ["LastName"])]
    assert await hits(store, '"word word thelastname"') == [("user", "text", ["word word theLastName"])]


async def test_a_long_word_is_found_in_pieces(store: Store) -> None:
    await talk(store, Message.user("first " + "x" * 200_000 + " last " + "字" * 200_000 + "漢"))
    assert await conversations(store, "last first") == ["A talk"]
    assert await conversations(store, "漢") == ["A talk"]


async def test_no_piece_of_a_long_message_is_left(store: Store, tmp_path: Path) -> None:
    message = Message.user("first " + "word " * 60_000 + "marker")
    id_ = await talk(store, message)
    await store.commit(id_, message.model_copy(update={"blocks": (Text(text="short"),)}))
    assert await conversations(store, "marker") == []
    assert await conversations(store, "short") == ["A talk"]
    with closing(sqlite3.connect(tmp_path / INDEX_NAME)) as index:
        assert index.execute("SELECT count(*) FROM texts").fetchone() == (1,)


async def test_only_the_beginning_of_an_endless_part_is_indexed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searchable_text, "MAX_PART_CHARACTERS", 1000)
    await talk(store, Message.user("first " + "x" * 1000 + " last"))
    assert await conversations(store, "first") == ["A talk"]
    assert await conversations(store, "last") == []


@pytest.mark.parametrize("typed", ["🎉", "🎉🎉", "done 🎉", "👩‍💻", "✅", "👍🏽", '"🎉 party"'])
async def test_emoji_are_found(store: Store, typed: str) -> None:
    await talk(store, Message.user("all done 🎉🎉 party, 👩‍💻 says ✅ and 👍🏽"))
    await talk(store, Message.user("all done 🎈"), title="Another")
    assert await conversations(store, typed) == ["A talk"]


async def test_text_that_utf8_cannot_carry_is_found(store: Store) -> None:
    await talk(store, Message.user("a\0b \ud800 漢字 \udfff needle"), title="t\ud800itle\0")
    assert len(await conversations(store, "needle")) == 1
    assert len(await conversations(store, "itle")) == 1
    assert len(await conversations(store, "\ud800 needle")) == 1
    assert await conversations(store, SearchQuery("needle", workspace="\ud800", model="\udfff")) == []
    assert len(await conversations(store, "needle")) == 1


async def test_a_short_beginning_beside_other_words_counts_only_as_a_word(store: Store) -> None:
    await talk(store, Message.user("vitamin tablets with c"), title="c")
    await talk(store, Message.user("vitamin tablets"), title="none")
    await talk(store, Message.user("vitamin with cream"), title="cream")
    assert (await conversations(store, "vitamin c"))[0] == "c"
    assert sorted(await conversations(store, "vitamin c")) == ["c", "cream", "none"]
    assert await conversations(store, "vitamin c ") == ["c"]
    assert await conversations(store, "vitamin cre") == ["cream"]
    assert sorted(await conversations(store, "with_c")) == ["c", "cream"]


async def test_a_longer_beginning_beside_other_words_must_be_there_and_counts_where_it_is_a_word(store: Store) -> None:
    await talk(store, Message.user("vitamin pla, with words that say nothing of it"), title="the word")
    await talk(store, Message.user("vitamin plants plants plants"), title="begun so")
    await talk(store, Message.user("vitamin tablets"), title="none")
    assert await conversations(store, "vitamin pla") == ["the word", "begun so"]
    assert await conversations(store, "vitamin_pla") == ["the word", "begun so"]
    assert await conversations(store, "tablets pla") == []


async def test_a_short_beginning_is_looked_for_until_there_is_enough_to_show(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_file, "_SHARD_BITS", 0)
    for number in range(5):
        await talk(store, Message.user("word"), title=f"talk {number}")
    results = await search(store, "w", limit=3)
    assert [conversation.title for conversation in results.conversations] == ["talk 4", "talk 3", "talk 2"]
    assert results.has_more
    assert not (await search(store, "w", limit=5)).has_more


async def test_more_than_can_be_shown_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        await talk(store, Message.user("word"), title=f"talk {number}")
    assert not (await search(store, "word", limit=4)).has_more
    assert (await search(store, "word", limit=3)).has_more
    monkeypatch.setattr(index_reader, "MAX_RANKED", 2)
    results = await search(store, "word")
    assert [conversation.title for conversation in results.conversations] == ["talk 3", "talk 2"]
    assert results.has_more


async def test_a_newer_search_takes_the_place_of_an_older_one(store: Store) -> None:
    await talk(store, *TALK)
    await search(store, "case")
    older = [asyncio.create_task(store.search.find(SearchQuery(word))) for word in ("snake", "user", "file")]
    await asyncio.sleep(0)
    newest = await store.search.find(SearchQuery("crème"))
    assert newest is not None
    assert len(newest.conversations) == 1
    assert await asyncio.gather(*older) == [None, None, None]


async def test_a_search_stops_at_the_next_table(store: Store, tmp_path: Path) -> None:
    await talk(store, *TALK)
    await search(store, "case")
    reader = IndexReader(tmp_path / INDEX_NAME)
    with pytest.raises(SearchStopped):
        reader.find(SearchQuery("case"), 30, lambda: True)
    assert reader.find(SearchQuery("case"), 30, lambda: False).conversations != ()
    reader.close()


async def test_a_cancelled_search_leaves_the_next_one_alone(store: Store) -> None:
    await talk(store, *TALK)
    search = asyncio.create_task(store.search.find(SearchQuery("snake")))
    await asyncio.sleep(0)
    search.cancel()
    assert await conversations(store, "snake") == ["A talk"]


async def test_a_search_can_be_narrowed_to_what_conversations_have_the_last_used_first(store: Store) -> None:
    for model, workspace in (("old", "/one"), ("new", None), ("old", "/two"), (None, ""), ("gone", "/gone")):
        conversation = await store.create_conversation(title="A talk", model=model, workspace=workspace)
        await store.commit(conversation.id, Message.user("Hello"))
    await store.delete_conversation(conversation.id)
    assert await store.search.choices() == SearchChoices(("old", "new"), ("/two", "/one"))


async def test_what_was_found_is_read_by_its_numbers_alone(store: Store, tmp_path: Path) -> None:
    await talk(store, *TALK)
    with closing(connect(tmp_path / DATABASE_NAME)) as db:
        for select in (conversation_search._SELECT_CONVERSATIONS, conversation_search._SELECT_MESSAGES):
            step = db.execute(f"EXPLAIN QUERY PLAN {select}", ("[1]",)).fetchone()[-1]
            assert "USING INTEGER PRIMARY KEY" in step
