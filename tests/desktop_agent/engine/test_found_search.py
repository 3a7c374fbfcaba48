"""The search in what other programs left on the disk: marked with their names, and gone with them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.exchange.found_histories import FoundHistories, FoundHistorySource, list_programs, load_found
from desktop_agent.exchange.foreign_tree import found_id
from desktop_agent.exchange.readers import HISTORY_READERS
from desktop_agent.exchange.readers.claude_code import ClaudeCodeReader
from desktop_agent.exchange.readers.codex import CodexReader
from desktop_agent.exchange.readers.reader import HistoryReader, Machine
from desktop_agent.storage.search import found_indexer
from desktop_agent.storage.search.found_index import FoundEntry, FoundIndexWriter, find_hits
from desktop_agent.storage.search.found_indexer import FoundIndexer
from desktop_agent.storage.search.index_file import FOUND_INDEX_NAME, connect_index
from desktop_agent.types.conversation_tree import ConversationOrigin
from desktop_agent.types.messages import Message
from desktop_agent.types.search import SearchPlace, SearchQuery, SearchResults
from tests.desktop_agent.exchange.readers.foreign_homes import (
    CLAUDE_SESSION,
    call,
    claude_entry,
    codex_item,
    codex_message,
    codex_session,
    write_claude_code,
    write_codex,
    write_lines,
    write_opencode,
)
from tests.desktop_agent.exchange.readers.test_continued_histories import WRITERS
from tests.fakes.markers import files_with

MARK = "quaxolotl"
Loading = Generator[tuple[FoundEntry, Sequence[Message] | None]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "OPENCODE_DB"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
async def engine(home: Path, tmp_path: Path) -> AsyncIterator[Engine]:
    engine = await Engine.open(tmp_path / "data")
    yield engine
    await engine.close()


def session(home: Path, name: str, *texts: str, day: int = 1, title: str = "") -> Path:
    """A session of Claude Code: prompts, each with its answer."""
    entries: list[dict[str, Any]] = []
    for number, text in enumerate(texts):
        kind = "assistant" if number % 2 else "user"
        content = [{"type": "text", "text": text}] if number % 2 else text
        before = f"{name}-{number - 1}" if number else None
        when = f"2026-05-{day:02}T10:00:{number:02}.000Z"
        entries.append(claude_entry(kind, f"{name}-{number}", before, content, timestamp=when))
    if title:
        entries.append({"type": "custom-title", "customTitle": title, "sessionId": name})
    return write_lines(home / ".claude" / "projects" / "app" / f"{name}.jsonl", entries)


async def index(engine: Engine, *programs: str) -> bool:
    return await engine.store.search.found.index_all(FoundHistorySource(programs or ("claude-code",)))


async def search(engine: Engine, query: SearchQuery | str) -> SearchResults:
    await engine.store.search.index_all()
    results = await engine.store.search.find(SearchQuery(query) if isinstance(query, str) else query)
    assert results is not None
    return results


async def found_ids(engine: Engine, query: SearchQuery | str) -> list[str]:
    return [hits.conversation_id for hits in (await search(engine, query)).conversations]


def go_on() -> None:
    pass


def ids(*names: str) -> list[str]:
    return [found_id("claude-code", f"app/{name}") for name in names]


async def test_a_message_is_found_with_its_program_and_its_place(engine: Engine, home: Path) -> None:
    write_claude_code(home)
    assert await index(engine)
    results = await search(engine, "sets")
    assert results.is_complete
    (hits,) = results.conversations
    assert hits.origin == ConversationOrigin(program="claude-code", id=CLAUDE_SESSION)
    assert (hits.program_title, hits.conversation_id) == ("Claude Code", found_id("claude-code", CLAUDE_SESSION))
    shown, _ = await FoundHistories(engine).open("claude-code", CLAUDE_SESSION, hits.conversation_id)
    assert {hit.message_id for hit in hits.hits} <= {message.id for message in shown.history}
    await shown.close()


async def test_what_other_branches_say_is_found_and_shown(engine: Engine, home: Path) -> None:
    write_claude_code(home)
    assert await index(engine)
    (hits,) = (await search(engine, "Make it y")).conversations
    (hit,) = hits.hits
    shown, _ = await FoundHistories(engine).open("claude-code", CLAUDE_SESSION, hits.conversation_id)
    assert hit.message_id not in [message.id for message in shown.history]
    await shown.branches.show(hit.message_id)
    assert hit.message_id in [message.id for message in shown.history]
    await shown.close()


async def test_own_and_found_ones_are_ranked_together(engine: Engine, home: Path) -> None:
    session(home, "a", "A harbour", "Yes", title="A")
    session(home, "c", *["Nothing"] * 9)
    session(home, "b", "boats", "Boats", title="The harbour")
    record = await engine.store.create_conversation(title="Ours", model=None)
    await engine.store.commit(record.id, Message.user("A harbour"))
    assert await index(engine)
    # A title counts most; what was said just now more than what was said months ago.
    assert await found_ids(engine, "harbour") == [*ids("b"), record.id, *ids("a")]
    results = await engine.store.search.find(SearchQuery("harbour"), limit=1)
    assert results is not None
    assert (len(results.conversations), results.has_more) == (1, True)


async def test_filters_are_honoured_and_those_of_our_own_places_exclude_found_ones(engine: Engine, home: Path) -> None:
    path = session(home, "a", "harbour one", "harbour two", day=3)
    session(home, "b", "harbour", "harbour", day=9)
    edit = claude_entry(
        "assistant",
        "a-9",
        "a-1",
        [call("t1", "Write", file_path="x.md", content="harbour")],
        timestamp="2026-05-03T11:00:00Z",
    )
    write_lines(path, [*map(json.loads, path.read_text().splitlines()), edit])
    write_codex(home)
    record = await engine.store.create_conversation(title="harbour", model=None)
    assert await index(engine, "claude-code", "codex")
    everything = await found_ids(engine, "harbour")
    assert sorted(everything) == sorted([record.id, *ids("a", "b")])
    since = SearchQuery("harbour", since=datetime(2026, 5, 9, tzinfo=UTC), until=datetime(2026, 5, 10, tzinfo=UTC))
    assert await found_ids(engine, since) == ids("b")
    assert sorted(await found_ids(engine, SearchQuery("harbour", program="claude-code"))) == sorted(ids("a", "b"))
    assert await found_ids(engine, SearchQuery("harbour", program="codex")) == []
    assert await found_ids(engine, SearchQuery("harbour", has_tool_call=True)) == ids("a")
    assert await found_ids(engine, SearchQuery("harbour", places=frozenset({SearchPlace.FILES}))) == ids("a")
    assert await found_ids(engine, SearchQuery("harbour", conversation_id=ids("b")[0])) == ids("b")
    assert await found_ids(engine, SearchQuery("harbour", tag="x")) == []
    folder = await engine.store.folders.create("Work")
    assert await found_ids(engine, SearchQuery("harbour", folder=folder.id)) == []
    choices = await engine.store.search.choices()
    assert choices.programs == (("claude-code", "Claude Code"), ("codex", "Codex"))


async def test_a_changed_conversation_takes_the_place_of_its_older_state(engine: Engine, home: Path) -> None:
    session(home, "a", "harbour", "first")
    session(home, "b", "harbour", "other")
    assert await index(engine)
    session(home, "a", "harbour", "second")
    assert await index(engine)
    assert await found_ids(engine, "first") == []
    assert await found_ids(engine, "second") == ids("a")
    assert sorted(await found_ids(engine, "harbour")) == sorted(ids("a", "b"))


async def test_what_is_written_while_it_is_indexed_is_found_the_next_time(engine: Engine, home: Path) -> None:
    path = session(home, "a", "harbour")
    # Its time is that of the message before it: only the file says that it came later.
    when = "2026-05-01T10:00:00.000Z"
    entry = claude_entry("assistant", "a-1", "a-0", [{"type": "text", "text": "lighthouse"}], timestamp=when)
    line = json.dumps(entry)
    half = len(line) // 2

    class Written(FoundHistorySource):
        """Somebody writes between the list and the reading: half a line."""

        def load(self, entries: Iterable[FoundEntry], pause: Callable[[], None]) -> Loading:
            with path.open("a") as file:
                file.write(line[:half])
            yield from super().load(entries, pause)

    assert await engine.store.search.found.index_all(Written(("claude-code",)))
    assert await found_ids(engine, "harbour") == ids("a")
    with path.open("a") as file:
        file.write(line[half:] + "\n")
    assert await index(engine)
    assert await found_ids(engine, "lighthouse") == ids("a")


async def test_nothing_is_read_again_that_did_not_change(engine: Engine, home: Path) -> None:
    session(home, "a", "harbour", "first")
    (home / ".claude" / "projects" / "app" / "b.jsonl").mkdir()
    read: list[str] = []

    class Watched(FoundHistorySource):
        def load(self, entries: Iterable[FoundEntry], pause: Callable[[], None]) -> Loading:
            for entry, messages in super().load(entries, pause):
                read.append(entry.origin[1])
                yield entry, messages

    for _ in range(2):
        assert await engine.store.search.found.index_all(Watched(("claude-code",)))
    assert read == ["app/a"]


async def test_a_line_without_an_end_takes_no_memory_and_hides_nothing_else(engine: Engine, home: Path) -> None:
    path = session(home, "a", "harbour", "lighthouse")
    with path.open("ab") as file:
        file.write(b'{"type": "user", "message": "')
        file.truncate(path.stat().st_size + 80_000_000)
    assert await index(engine)
    assert await found_ids(engine, "lighthouse") == ids("a")


async def test_a_folder_that_vanishes_takes_everything_with_it(engine: Engine, home: Path, tmp_path: Path) -> None:
    session(home, "a", MARK, title=MARK)
    write_codex(home)
    programs = ("claude-code", "codex")
    assert await index(engine, *programs)
    assert await found_ids(engine, MARK) == ids("a")
    assert files_with(MARK, [tmp_path / "data"]) != []

    class Vanishing(FoundHistorySource):
        """The folder goes between the list and the reading."""

        def load(self, entries: Iterable[FoundEntry], pause: Callable[[], None]) -> Loading:
            rmtree(home / ".claude", ignore_errors=True)
            yield from super().load(entries, pause)

    session(home, "b", f"{MARK} again", title=MARK)
    assert await engine.store.search.found.index_all(Vanishing(programs))
    assert await index(engine, *programs)
    assert await found_ids(engine, MARK) == []
    assert files_with(MARK, [tmp_path / "data"]) == []


async def test_a_program_that_is_switched_off_is_gone_at_once_and_the_last_one_with_the_file(
    engine: Engine, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(home, "a", MARK, title=MARK)
    write_codex(home)
    assert await index(engine, "claude-code", "codex")
    search_found = engine.store.search.found
    monkeypatch.setattr(search_found, "_source", FoundHistorySource(("codex",)))
    # Before the index has followed.
    assert await found_ids(engine, MARK) == []
    assert files_with(MARK, [tmp_path / "data"]) != []
    assert await index(engine, "codex")
    assert files_with(MARK, [tmp_path / "data"]) == []
    assert list((tmp_path / "data").glob(f"{FOUND_INDEX_NAME}*")) != []
    assert await search_found.index_all(FoundHistorySource(()))
    assert list((tmp_path / "data").glob(f"{FOUND_INDEX_NAME}*")) == []
    assert (await search(engine, "harbour")).is_complete


async def test_in_the_background_it_is_complete_after_a_while(engine: Engine, home: Path) -> None:
    session(home, "a", "harbour")
    engine.store.search.found.set_source(FoundHistorySource(("claude-code",)))
    while not (results := await search(engine, "harbour")).is_complete:
        pass
    assert [hits.conversation_id for hits in results.conversations] == ids("a")


async def test_of_too_many_the_newest_are_found_and_that_is_said(
    engine: Engine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 6):
        session(home, f"s{day}", f"harbour {'long ' * 20}", day=day)
    monkeypatch.setattr(found_indexer, "MAX_CHARACTERS", 250)
    assert await index(engine)
    results = await search(engine, "harbour")
    assert not results.is_complete
    assert "oldest conversations" in str(results.obstacle)
    assert [hits.conversation_id for hits in results.conversations][:2] == ids("s5", "s4")
    assert await index(engine)
    session(home, "s6", f"harbour {'long ' * 20}", day=6)
    assert await index(engine)
    assert await index(engine)
    assert await found_ids(engine, "harbour") == ids("s6", "s5")
    monkeypatch.setattr(found_indexer, "MAX_CHARACTERS", 10_000)
    monkeypatch.setattr(found_indexer, "MAX_CONVERSATIONS", 3)
    assert await index(engine)
    assert await found_ids(engine, "harbour") == ids("s6", "s5", "s4")


async def test_a_damaged_index_is_made_anew(engine: Engine, home: Path, tmp_path: Path) -> None:
    session(home, "a", "harbour")
    assert await index(engine)
    path = tmp_path / "data" / FOUND_INDEX_NAME
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(b"SQLite format 3\0" + b"x" * 20_000)
    assert await found_ids(engine, "harbour") == []
    assert await index(engine)
    assert await found_ids(engine, "harbour") == ids("a")


async def test_a_name_that_is_no_text_is_found(engine: Engine, home: Path) -> None:
    session(home, "odd\udcff", "harbour")
    assert await index(engine)
    (hits,) = (await search(engine, "harbour")).conversations
    assert hits.origin is not None
    assert hits.origin.id == "app/odd\udcff"


async def test_a_database_of_a_running_program_is_copied_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with closing(write_opencode(home, keep_log=True)) as running:
        source = FoundHistorySource(("opencode",))
        entries, unclear = source.entries(go_on)
        assert (len(entries), unclear) == (1, set())
        loading = source.load([*entries, *entries, *entries], go_on)
        copies: list[list[str]] = []
        for _, messages in loading:
            assert messages
            copies.append([path.name for path in (tmp_path / "temporary").rglob("*.sqlite")])
            if len(copies) == 2:
                running.execute("UPDATE session SET title = 'Another'")
                running.commit()
        assert copies[0] == copies[1] != copies[2]
        assert {len(copy) for copy in copies} == {1}
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("reader", HISTORY_READERS, ids=lambda reader: reader.program)
async def test_what_each_program_says_is_found_at_its_place(
    engine: Engine, home: Path, reader: type[HistoryReader]
) -> None:
    WRITERS[reader.program](home)
    assert await index(engine, reader.program)
    (hits,) = (await search(engine, SearchQuery(program=reader.program))).conversations
    assert hits.origin is not None
    session, _ = await FoundHistories(engine).open(reader.program, hits.origin.id, hits.conversation_id)
    everything = SearchQuery(conversation_id=hits.conversation_id)
    (all_hits,) = (await search(engine, everything)).conversations
    assert {hit.message_id for hit in all_hits.hits} <= {node.message.id for node in session.branches.tree.messages}
    assert len(all_hits.hits) > 1
    await session.close()


async def test_one_file_that_cannot_be_read_keeps_nothing_else(engine: Engine, home: Path) -> None:
    session(home, "a", "harbour")
    session(home, "b", "harbour")
    removed = session(home, "c", "harbour")
    assert await index(engine)
    removed.unlink()
    os.mkfifo(removed.with_name("b2.jsonl"))
    removed.with_name("b.jsonl").unlink()
    removed.with_name("b.jsonl").symlink_to(removed.with_name("a.jsonl"))
    assert await index(engine)
    assert await found_ids(engine, "harbour") == ids("a")


@pytest.mark.parametrize("error", [ValueError, PermissionError, RecursionError])
async def test_a_program_whose_list_fails_keeps_what_is_known_and_hides_no_other(
    engine: Engine, home: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    write_codex(home)
    programs = ("claude-code", "codex")
    assert await index(engine, *programs)
    known = await found_ids(engine, SearchQuery(program="codex"))
    assert known
    session(home, "a", "harbour")

    def fail(_reader: object) -> None:
        raise error

    monkeypatch.setattr(CodexReader, "list_conversations", fail)
    assert [program.program for program in list_programs()] == ["claude-code"]
    assert await index(engine, *programs)
    assert await found_ids(engine, "harbour") == ids("a")
    assert await found_ids(engine, SearchQuery(program="codex")) == known


async def test_a_message_below_a_very_long_line_is_found_at_its_place(engine: Engine, home: Path) -> None:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{'A' * 8_000_000}"}
    shown = codex_item("message", 12, role="user", content=[picture])
    messages = [codex_message("user", f"harbour {number}", second=13 + number) for number in range(3)]
    write_codex(home, [*codex_session(), shown, *messages])
    assert await index(engine, "codex")
    (hits,) = (await search(engine, "harbour")).conversations
    assert hits.origin is not None
    loaded = load_found(CodexReader(Machine.current()), hits.origin.id).tree
    texts = {message.id: message.text for message in loaded.branch()}
    assert sorted(hit.snippet for hit in hits.hits) == ["harbour 0", "harbour 1", "harbour 2"]
    assert [texts.get(hit.message_id) for hit in hits.hits] == [hit.snippet for hit in hits.hits]


async def test_what_cannot_be_read_is_found_by_its_title_and_tried_again_by_another_process(
    engine: Engine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(home, "a", "harbour", "lighthouse", title="boats")
    session(home, "b", "harbour", day=2)

    def fail(_reader: object, _id: str) -> None:
        raise RecursionError

    with monkeypatch.context() as patch:
        patch.setattr(ClaudeCodeReader, "load", fail)
        assert await index(engine)
    assert await found_ids(engine, "boats") == ids("a")
    assert await index(engine)
    assert await found_ids(engine, "lighthouse") == []
    monkeypatch.setattr(engine.store.search.found, "_unreadable", {})
    assert await index(engine)
    assert await found_ids(engine, "lighthouse") == ids("a")


async def test_a_database_that_is_being_written_keeps_what_is_known(engine: Engine, home: Path) -> None:
    write_opencode(home).close()
    assert await index(engine, "opencode")
    everything = SearchQuery(program="opencode")
    assert len(await found_ids(engine, everything)) == 1
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.rename(path.with_name("aside"))
    path.write_bytes(b"SQLite format 3\0")
    assert await index(engine, "opencode")
    assert len(await found_ids(engine, everything)) == 1
    path.unlink()
    assert await index(engine, "opencode")
    assert await found_ids(engine, everything) == []


async def test_closing_waits_for_no_long_conversation(engine: Engine, home: Path) -> None:
    session(home, "a", *["harbour"] * 2_000)
    reading = threading.Event()

    class Watched(FoundHistorySource):
        def load(self, entries: Iterable[FoundEntry], pause: Callable[[], None]) -> Loading:
            for entry, messages in super().load(entries, pause):
                reading.set()
                yield entry, messages

    engine.store.search.found.set_source(Watched(("claude-code",)))
    assert await asyncio.to_thread(reading.wait, 10)
    await engine.store.search.found.close()
    assert await found_ids(engine, SearchQuery(program="claude-code")) == []


async def test_closing_waits_for_nothing_that_does_not_end(engine: Engine, home: Path, tmp_path: Path) -> None:
    session(home, "a", "harbour", day=2)
    session(home, "b", "harbour")
    reading, released = threading.Event(), threading.Event()

    class Stuck(FoundHistorySource):
        """As a file on a disk that does not answer."""

        def load(self, entries: Iterable[FoundEntry], pause: Callable[[], None]) -> Loading:
            for entry, messages in super().load(entries, pause):
                yield entry, messages
                reading.set()
                released.wait()

    indexer = engine.store.search.found
    indexer.set_source(Stuck(("claude-code",)))
    assert await asyncio.to_thread(reading.wait, 10)
    await indexer.close()
    assert not released.is_set()
    assert await found_ids(engine, "harbour") == ids("a")
    # Nobody has the index any more.
    other = FoundIndexer(tmp_path / "data", asyncio.Event().wait)
    assert await other.index_all(FoundHistorySource(("claude-code",)))
    await other.close()
    assert sorted(await found_ids(engine, "harbour")) == sorted(ids("a", "b"))
    threads = {thread for thread in threading.enumerate() if thread.name == "tool"}
    assert threads
    released.set()
    for thread in threads:
        await asyncio.to_thread(thread.join)


async def test_a_long_file_is_left_where_it_is_when_the_program_is_closed(engine: Engine, home: Path) -> None:
    session(home, "a", *["harbour"] * 50)
    lines: list[int] = []
    reading, released = threading.Event(), threading.Event()

    class Watched(FoundHistorySource):
        def load(self, entries: Iterable[FoundEntry], pause: Callable[[], None]) -> Loading:
            def count() -> None:
                lines.append(len(lines))
                if len(lines) == 10:
                    reading.set()
                    released.wait()
                pause()

            return super().load(entries, count)

    indexer = engine.store.search.found
    indexer.set_source(Watched(("claude-code",)))
    assert await asyncio.to_thread(reading.wait, 10)
    closing_ = asyncio.ensure_future(indexer.close())
    await asyncio.sleep(0)
    released.set()
    await closing_
    assert len(lines) == 10
    assert await found_ids(engine, SearchQuery(program="claude-code")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
async def test_a_copy_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    (temporary / "desktop-agent-copy-empty").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (temporary / "desktop-agent-copy-link").symlink_to(elsewhere)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def copies() -> list[str]:
        return sorted(path.name for path in temporary.rglob("copy-1.sqlite"))

    def start() -> subprocess.Popen[str]:
        environment = {**os.environ, "TMPDIR": str(temporary)}
        command = [sys.executable, "-c", _LOAD]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "loaded\n"
        return process

    with closing(write_opencode(home, keep_log=True)):
        killed, living = start(), start()
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert len(copies()) == 2
        source = FoundHistorySource(("opencode",))
        assert len(source.entries(go_on)[0]) == 1
        assert len(copies()) == 1
        living.kill()
        living.communicate()
        source.entries(go_on)
    assert copies() == []
    assert sorted(path.name for path in temporary.iterdir()) == ["desktop-agent-copy-empty", "desktop-agent-copy-link"]
    assert [path.name for path in elsewhere.iterdir()] == ["file"]


_LOAD = """
import time
from desktop_agent.engine.exchange.found_histories import FoundHistorySource
source = FoundHistorySource(("opencode",))
entries, _ = source.entries(lambda: None)
loading = source.load(entries, lambda: None)
next(loading)
print("loaded", flush=True)
time.sleep(600)
"""


def test_a_conversation_that_is_put_off_leaves_nothing_and_hinders_nothing(tmp_path: Path) -> None:
    writer = FoundIndexWriter(tmp_path / FOUND_INDEX_NAME)
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    entry = FoundEntry(("p", "1"), "found-1", "harbour", moment, moment, "1")

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        writer.put(entry, [Message.user("harbour")], stop)
    assert writer.indexed() == {}
    assert writer.put(entry, [Message.user("harbour")], lambda: None) == 7
    assert list(writer.indexed()) == [("p", "1")]
    writer.close()


def test_a_note_in_another_programs_conversation_is_known_as_such(tmp_path: Path) -> None:
    writer = FoundIndexWriter(tmp_path / FOUND_INDEX_NAME)
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    note = Message.user("look at the harbour").model_copy(update={"injected_by": "subagent"})
    entry = FoundEntry(("p", "1"), "found-1", "", moment, moment, "1")
    writer.put(entry, [Message.user("harbour"), note], go_on)
    writer.close()
    with closing(connect_index(tmp_path / FOUND_INDEX_NAME, "mode=ro")) as db:
        hits = find_hits(db, SearchQuery("harbour"), 30, lambda: False, {"p": "P"}, 0.0).hits
    ((_, conversation),) = hits
    assert {hit.snippet: hit.is_note for hit in conversation.hits} == {"harbour": False, note.text: True}
