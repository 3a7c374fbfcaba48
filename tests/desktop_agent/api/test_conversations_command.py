"""`conversations`: what is listed, backed up, restored and checked from a terminal; and the same from a program."""

import asyncio
import base64
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.__main__ import main
from desktop_agent.api.client import Client
from desktop_agent.api.history import History
from desktop_agent.storage.content_files import PictureFiles
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Base64Source, Image, StoredSource, Text, ToolResult
from desktop_agent.types.conversation_tree import TreeMessage
from desktop_agent.types.errors import StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.preferences import HistoryPreferences, Preferences
from desktop_agent.types.search import SearchResults
from tests.desktop_agent.exchange.readers.foreign_homes import CLAUDE_SESSION, claude_session, write_lines
from tests.desktop_agent.storage.test_conversation_trees import TREE
from tests.fakes.library import acting, says
from tests.fakes.scripted_provider import Turn


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def fill() -> None:
        store = await Store.open(tmp_path / "data")
        await store.import_tree(TREE)
        other = await store.create_conversation(title="red \x1b[31m")
        await store.delete_conversation(other.id)
        await store.close()

    asyncio.run(fill())
    monkeypatch.setenv("DESKTOP_AGENT_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


class Terminal:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *words: str) -> tuple[int, str, str]:
        code = main(["conversations", *words])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def json(self, *words: str) -> Any:
        code, out, err = self.run(*words, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def terminal(data: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs a time zone of the process")
@pytest.mark.parametrize("zone", ["UTC-14", "UTC+12"])
@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00Z"])
def test_moments_that_some_zones_do_not_have_are_listed(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, moment: str
) -> None:
    message = {"id": "a", "role": "user", "blocks": [{"type": "text", "text": "endless"}], "created_at": moment}
    tree = {
        "id": "end",
        "title": "E",
        "created_at": moment,
        "updated_at": moment,
        "head": "a",
        "messages": [{"message": message, "parent": None}],
    }
    file = {"format": "desktop-agent-conversations", "version": 1, "conversations": [tree]}
    (tmp_path / "end.json").write_text(json.dumps(file))
    assert terminal.json("import", str(tmp_path / "end.json"))["added"] == ["end"]
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for words in (["list"], ["search", "endless"], ["show", "end"]):
            assert terminal.run(*words)[0] == 0
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_limit_beyond_all_numbers_is_none(terminal: Terminal) -> None:
    for words in (["list"], ["search", "the"]):
        assert terminal.json(*words, "--limit", "9" * 30) == terminal.json(*words)


def test_conversations_are_listed(terminal: Terminal) -> None:
    code, out, err = terminal.run("list")
    assert (code, err) == (0, "")
    assert "imported" in out
    assert "Two ways" in out
    (listed,) = terminal.json("list")
    assert (listed["id"], listed["origin"]) == ("imported", {"program": "Another assistant", "id": "1"})
    assert listed["messages"] == 4
    assert terminal.json("list", "--limit", "1") == [listed]


def test_folders_tags_and_the_archive_narrow_the_list(terminal: Terminal, data: Path) -> None:
    async def organise() -> None:
        store = await Store.open(data)
        outer = await store.folders.create("Work")
        inner = await store.folders.create("Import", parent=outer.id)
        await store.placements.change(["imported"], folder=inner.id, add_tags=["later"])
        await store.close()

    async def archive() -> None:
        store = await Store.open(data)
        await store.placements.change(["imported"], archived=True)
        await store.close()

    asyncio.run(organise())
    for words in ((), ("--folder", "work"), ("--folder", "Work/Import"), ("--tag", "Later")):
        (listed,) = terminal.json("list", *words)
        assert (listed["folder"], listed["tags"]) == (["Work", "Import"], ["later"])
    assert terminal.json("list", "--archived") == []
    for command in ("list", "search"):
        code, out, err = terminal.run(command, "--tag", "other")
        assert (code, out) == (2, "")
        assert "No conversation has the tag “other”. Name one of: later." in err
        code, out, err = terminal.run(command, "--folder", "Import")
        assert (code, out) == (2, "")
        assert "There is no folder “Import”." in err
    assert "Work/Import: Two ways" in terminal.run("list")[1]
    asyncio.run(archive())
    assert terminal.json("list") == []
    (listed,) = terminal.json("list", "--archived")
    assert listed["archived_at"]
    exported = data.parent / "all.json"
    terminal.json("export", "--to", str(exported))
    assert json.loads(exported.read_text())["conversations"][0]["folder"] == ["Work", "Import"]


def test_titles_cannot_command_the_terminal(terminal: Terminal) -> None:
    _, out, _ = terminal.run("list", "--trash")
    assert "red \\x1b[31m" in out


def test_a_backup_is_written_listed_and_restored(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    backup = terminal.json("backup")
    assert Path(backup["folder"]).parent == data / "backups"
    assert backup["counts"] == {"conversations": 1, "in_trash": 1, "messages": 6}
    assert terminal.json("backups") == [backup]
    elsewhere = terminal.json("backup", "--to", str(tmp_path / "elsewhere"))
    assert terminal.json("backups", "--folder", str(tmp_path / "elsewhere")) == [elsewhere]
    new = str(tmp_path / "new")
    assert terminal.json("restore", backup["folder"], "--into", new)["restored"] == backup["counts"]
    assert [row["id"] for row in terminal.json("list", "--data-dir", new)] == ["imported"]
    code, _, err = terminal.run("restore", backup["folder"], "--into", new)
    assert code == 1
    assert "not empty" in err


def test_the_command_that_opens_what_was_restored_can_be_typed(terminal: Terminal, tmp_path: Path) -> None:
    backup = terminal.json("backup")["folder"]
    new = tmp_path / "what's new"
    out = terminal.run("restore", backup, "--into", str(new))[1]
    (command,) = re.findall("Open them with: (.*)", out)
    assert shlex.split(command) == ["desktop-agent", "--data-dir", str(new)]


def test_words_are_found(terminal: Terminal) -> None:
    (conversation,) = terminal.json("search", "another", "beginning")
    assert conversation["conversation_id"] == "imported"
    assert [hit["message_id"] for hit in conversation["hits"]] == ["f"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*", conversation["hits"][0]["at"])
    code, out, err = terminal.run("search", "anoth")
    assert (code, err) == (0, "")
    assert "user: another beginning" in out
    assert terminal.json("search", "nothing") == []


@pytest.mark.parametrize(
    ("words", "is_found"),
    [
        (("--since", "2020-01-01"), True),
        (("--since", "2020-01-01", "--until", "2020-01-02"), False),
        (("--role", "user"), True),
        (("--role", "assistant"), False),
        (("--model", "another"), False),
        (("--folder", "Work"), True),
        (("--folder", "Home"), False),
        (("--tag", "later"), True),
        (("--tag", "other"), False),
        (("--workspace", "/somewhere"), True),
        (("--workspace", "/elsewhere"), False),
        (("--has-image",), False),
        (("--has-tool-call",), False),
        (("--in-files",), False),
        (("--program", "codex"), False),
    ],
)
def test_filters_narrow_a_search(terminal: Terminal, data: Path, words: tuple[str, ...], is_found: bool) -> None:
    async def organise() -> None:
        store = await Store.open(data)
        await store.folders.create("Home")
        work = await store.folders.create("Work")
        await store.placements.change(["imported"], folder=work.id, add_tags=["later"])
        other = await store.create_conversation(title="Other")
        await store.placements.change([other.id], add_tags=["other"])
        await store.close()

    asyncio.run(organise())
    hits = terminal.json("search", "beginning", *words)
    assert [conversation["conversation_id"] for conversation in hits] == (["imported"] if is_found else [])


def test_a_note_of_the_program_is_no_word_of_the_person(terminal: Terminal, data: Path) -> None:
    async def note() -> None:
        store = await Store.open(data)
        message = Message.user("walrus files were undone").model_copy(update={"injected_by": "undo"})
        record = await store.create_conversation(title="Undone")
        await store.commit(record.id, message)
        await store.close()

    asyncio.run(note())
    assert "  note: walrus files were undone\n" in terminal.run("search", "walrus")[1]
    assert terminal.json("search", "walrus", "--role", "user") == []


def test_a_search_for_nothing_is_refused_and_a_filter_alone_finds_the_newest(terminal: Terminal) -> None:
    assert terminal.json("search", "--role", "user")[0]["conversation_id"] == "imported"
    assert terminal.json("search", " ", "--role", "user")[0]["conversation_id"] == "imported"
    for words in ((), ("",), ("   ",), (" ", "\t")):
        code, out, err = terminal.run("search", *words)
        assert (code, out, "There is nothing to look for." in err) == (2, "", True)


def test_a_search_without_results_says_so(terminal: Terminal) -> None:
    assert terminal.run("search", "walrus") == (0, "", "Nothing was found.\n")
    assert terminal.json("search", "walrus") == []
    code, out, err = terminal.run("search", "walrus", "--program", "nobody")
    assert (code, out) == (2, "")
    assert "No histories of “nobody” can be read. Name one of: claude-code, " in err


def test_what_has_no_title_has_the_name_that_it_has_in_exports(terminal: Terminal, data: Path) -> None:
    async def rename() -> None:
        async with History(data) as history:
            await history.add(TREE.model_copy(update={"id": "untitled", "title": ""}))

    asyncio.run(rename())
    for words in (("list",), ("search", "beginning")):
        assert re.search(r"^untitled  .*Conversation$", terminal.run(*words)[1], re.MULTILINE)
    assert terminal.run("show", "untitled")[1].startswith("# Conversation\n")


def test_it_is_said_that_not_all_was_searched(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    async def find(*_: object) -> SearchResults:
        return SearchResults(is_complete=False)

    monkeypatch.setattr(History, "search", find)
    for words in ((), ("--json",)):
        code, _, err = terminal.run("search", "tea", *words)
        assert (code, "Not everything is searched yet" in err) == (0, True)


def test_what_another_assistant_left_is_found_where_it_is_shown(
    terminal: Terminal, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    write_lines(home / ".claude" / "projects" / f"{CLAUDE_SESSION}.jsonl", claude_session())
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert terminal.json("search", "sets x") == []
    assert list(data.glob("search-found*")) == []
    shown = Preferences(histories=HistoryPreferences(shown=("claude-code",)))
    asyncio.run(PreferencesFile(data).save(shown))
    (conversation,) = terminal.json("search", "sets x")
    assert conversation["origin"] == {"program": "claude-code", "id": CLAUDE_SESSION}
    code, out, err = terminal.run("search", "sets x")
    assert (code, err) == (0, "")
    assert out.startswith(f"Claude Code: {CLAUDE_SESSION}  ")
    asyncio.run(PreferencesFile(data).save(Preferences()))
    assert terminal.json("search", "sets x") == []
    assert list(data.glob("search-found*")) == []


def test_a_conversation_is_shown(terminal: Terminal) -> None:
    code, out, err = terminal.run("show", "imported")
    assert (code, err) == (0, "")
    assert "## You" in out
    assert "look" in out
    assert terminal.json("show", "imported")["conversations"][0]["head"] == "d"
    code, _, err = terminal.run("show", "nothing")
    assert code == 2
    assert "There is no conversation “nothing”." in err


def test_what_is_exported_is_imported_elsewhere(terminal: Terminal, tmp_path: Path) -> None:
    archive = tmp_path / "all.zip"
    assert terminal.json("export", "--to", str(archive))["files"] == [str(archive)]
    place = ("--data-dir", str(tmp_path / "new" / "computer"))
    assert "There are no saved conversations" in terminal.run("list", *place)[2]
    assert terminal.json("import", str(archive), *place) == {
        "added": ["imported"],
        "present": 0,
        "skipped": [],
        "notes": ["Workspace folders: the conversations start without one here. Choose it again."],
    }
    second = terminal.json("import", str(archive), *place)
    assert (second["present"], second["notes"]) == (1, [])
    copy = tmp_path / "copy.zip"
    terminal.json("export", "--to", str(copy), *place)
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(copy) as after:
        assert before.namelist() == after.namelist()
        for name in before.namelist():
            # The folder is the one thing that a file does not bring along.
            assert after.read(name) == before.read(name).replace(b'"workspace":"/somewhere"', b'"workspace":null')


def test_one_that_is_not_there_keeps_no_other_from_the_export(terminal: Terminal, tmp_path: Path) -> None:
    target = tmp_path / "all.json"
    code, out, err = terminal.run("export", "imported", "nothing", "--to", str(target), "--json")
    assert (code, json.loads(out)["gone"]) == (1, ["nothing"])
    assert "not exported: nothing." in err
    assert [tree["id"] for tree in json.loads(target.read_text())["conversations"]] == ["imported"]


def test_pages_are_exported_one_or_all(terminal: Terminal, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    terminal.json("export", "imported", "--to", str(page))
    assert page.read_text().startswith("<!DOCTYPE html>")
    (path,) = terminal.json("export", "--to", str(tmp_path / "text.md"))["files"]
    assert "look" in Path(path).read_text()
    code, _, err = terminal.run("export", "--to", str(tmp_path / "x.docx"))
    assert code == 2
    assert "--format" in err
    code, _, err = terminal.run("export", "imported", "--to", str(tmp_path / "nowhere" / "x.json"))
    assert code == 1
    assert not list(tmp_path.glob("*/.x*"))


def imported_file(path: Path, title: str, *blocks: dict[str, Any]) -> str:
    """Write an export of ours with one prompt, and return its path."""
    message = {"id": "a", "role": "user", "blocks": blocks, "created_at": "2026-01-01T00:00:00Z"}
    tree = {
        "id": title,
        "title": title,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "head": "a",
        "messages": [{"message": message, "parent": None}],
    }
    file = {"format": "desktop-agent-conversations", "version": 1, "conversations": [tree]}
    path.write_text(json.dumps(file))
    return str(path)


def test_a_title_of_large_characters_makes_a_file_name(terminal: Terminal, tmp_path: Path) -> None:
    terminal.json("import", imported_file(tmp_path / "a.json", "\N{GRINNING FACE}" * 70))
    files = terminal.json("export", "--format", "html", "--to", str(tmp_path / "pages"))["files"]
    assert sorted(map(str, (tmp_path / "pages").iterdir())) == sorted(files)
    assert len(files) == 2


def test_a_name_as_long_as_the_disk_takes_is_written(terminal: Terminal, tmp_path: Path) -> None:
    target = tmp_path / f"{'x' * 250}.json"
    assert terminal.json("export", "imported", "--to", str(target))["files"] == [str(target)]


def test_a_picture_that_says_it_is_larger_than_any_is_kept_as_it_is(terminal: Terminal, tmp_path: Path) -> None:
    source = {
        "type": "stored",
        "digest": "0" * 64,
        "media_type": "image/png",
        "size": 1,
        "width": 10**30,
        "height": 10**30,
    }
    file = imported_file(tmp_path / "a.json", "large", {"type": "image", "source": source})
    imported = terminal.json("import", file)
    assert imported["added"] == ["large"]
    assert imported["notes"]


def test_what_is_no_export_is_refused(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    code, _, err = terminal.run("import", str(tmp_path / "x.json"), "--data-dir", str(tmp_path / "nowhere"))
    assert code == 1
    assert "holds no conversations" in err
    assert not (tmp_path / "nowhere").exists()


def test_what_another_assistant_left_is_imported(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    session = write_lines(home / ".claude" / "projects" / f"{CLAUDE_SESSION}.jsonl", claude_session())
    before = session.read_bytes()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert terminal.json("found") == [{"program": "claude-code", "title": "Claude Code", "count": 1}]
    (listed,) = terminal.json("found", "claude-code")
    assert listed["id"] == CLAUDE_SESSION
    (id_,) = terminal.json("import", "--from", "claude-code")["added"]
    assert terminal.json("import", "--from", "claude-code", f"--only={CLAUDE_SESSION}")["present"] == 1
    (written,) = terminal.json("show", id_)["conversations"]
    assert written["origin"] == {"program": "claude-code", "id": CLAUDE_SESSION}
    assert terminal.json("search", "What does")[0]["conversation_id"] == id_
    assert session.read_bytes() == before
    for words in (("import", "--from", "nothing"), ("import",), ("found", "nothing")):
        code, _, err = terminal.run(*words)
        assert code == 2
        assert "Name" in err


def test_the_database_is_compacted(terminal: Terminal) -> None:
    sizes = terminal.json("compact")
    assert 0 < sizes["after"] <= sizes["before"]
    code, out, _ = terminal.run("compact")
    assert code == 0
    assert out.startswith("Before: ")


def test_all_is_checked(terminal: Terminal) -> None:
    assert terminal.json("check")["notices"] == []
    assert main(["check"]) == 0


@pytest.mark.parametrize(
    "words", [(), ("nothing",), ("list", "--limit", "0"), ("restore", "x"), ("search", "--since", "x")]
)
def test_wrong_use_ends_with_2(terminal: Terminal, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        terminal.run(*words)
    assert ended.value.code == 2


def test_where_nothing_was_saved_nothing_is_created(terminal: Terminal, tmp_path: Path) -> None:
    for command in ("list", "backup", "check"):
        code, out, err = terminal.run(command, "--data-dir", str(tmp_path / "nowhere"))
        assert (code, out) == (1, "")
        assert "There are no saved conversations" in err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("folder", "sentence"),
    [
        ("~nobody-of-this-name/data", "There is no home folder for “~nobody-of-this-name/data”."),
        ("x" * 300, "is too long for this system"),
    ],
)
def test_a_data_folder_that_cannot_be_one_is_said(terminal: Terminal, folder: str, sentence: str) -> None:
    for command in ("list", "check", "backup"):
        code, out, err = terminal.run(command, "--data-dir", folder)
        assert (code, out) == (1, "")
        assert sentence in err


def test_a_damaged_database_is_not_emptied_without_a_word(terminal: Terminal, tmp_path: Path) -> None:
    for command in ("list", "backups", "search tea", "export --to all.zip", "backup"):
        folder = tmp_path / command.replace(" ", "-")
        folder.mkdir()
        (folder / "conversations.sqlite3").write_bytes(b"garbage" * 1_000)
        _, _, err = terminal.run(*command.split(), "--data-dir", str(folder))
        assert ("conversations.sqlite3.damaged" in err) is (command != "backups")


def test_a_missing_folder_of_backups_is_said(terminal: Terminal, tmp_path: Path) -> None:
    code, out, err = terminal.run("backups", "--folder", str(tmp_path / "nowhere"))
    assert (code, out) == (2, "")
    assert "nowhere”. Name the folder of the backups." in err


def test_it_runs_as_a_program_of_its_own(data: Path) -> None:
    command = [sys.executable, "-m", "desktop_agent", "conversations", "list", "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert json.loads(ended.stdout)[0]["title"] == TREE.title


@pytest.mark.skipif(sys.platform == "win32", reason="written for the pipes and devices of Unix")
@pytest.mark.parametrize("command", ["conversations list", "conversations show imported --json", "check", "usage"])
def test_output_that_nobody_takes_is_no_traceback(data: Path, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as broken, Path("/dev/full").open("wb") as full:
        for output, code, words in ((broken, 141, ""), (full, 1, "The output cannot be written")):
            run = [sys.executable, "-m", "desktop_agent", *command.split()]
            ended = subprocess.run(run, stdout=output, stderr=subprocess.PIPE, check=False)
            assert (ended.returncode, ended.stderr.decode().startswith(words)) == (code, True)
            assert b"Traceback" not in ended.stderr
            assert b"Exception ignored" not in ended.stderr


async def test_a_program_reads_and_adds_conversations(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "data")
    await store.close()
    async with History(tmp_path / "data") as history:
        assert await history.add(TREE)
        assert not await history.add(TREE)
        assert await history.conversation("imported") == TREE
        with pytest.raises(WrongUse):
            await history.conversation("nothing")
        assert [record.id for record in await history.conversations()] == ["imported"]
        backup = await history.back_up()
        assert await history.backups() == (backup,)
        assert await history.backups(tmp_path) == ()
    before, after = await History.restore(backup.folder, tmp_path / "new")
    assert before == after == backup.counts
    for closed in (History(tmp_path / "data"), history):
        with pytest.raises(WrongUse, match="async with"):
            await closed.check()
    with pytest.raises(StorageFailed, match="no saved conversations"):
        async with History(tmp_path / "nowhere"):
            pass


async def test_a_client_goes_on_with_a_stored_conversation_and_its_pictures(tmp_path: Path) -> None:
    first, second = (b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 2, width) for width in (1, 3))
    held, gone = (
        Image(source=Base64Source(media_type="image/png", data=base64.b64encode(data).decode("ascii")))
        for data in (first, second)
    )
    prompt = Message.user_with_blocks([Text(text="See"), held, gone])
    result = Message.tool_results([ToolResult(tool_use_id="c1", content=(held,))])
    nodes = (TreeMessage(message=prompt), TreeMessage(message=result, parent=prompt.id))
    async with History(tmp_path / "data", create=True) as history:
        await history.add(TREE.model_copy(update={"messages": nodes, "head": result.id}))
        stored = (await history.conversation("imported")).branch()[0].blocks[2]
        assert isinstance(stored, Image)
        assert isinstance(stored.source, StoredSource)
        PictureFiles(tmp_path / "data").path_of(stored.source).unlink()
        missing = Text(text="[A picture of this conversation is missing from the data folder.]")
        messages = await history.messages("imported")
    assert messages == (prompt.model_copy(update={"blocks": (Text(text="See"), held, missing)}), result)
    options, provider = acting(Turn(says("Two dots.")))
    async with Client(options) as client:
        await client.edit_history(messages[:1])
        await client.complete()
    assert provider.requests[0].messages[0].blocks[1] == held


async def test_paths_and_formats_may_be_words_and_one_id_is_one(tmp_path: Path) -> None:
    folder, into = str(tmp_path / "data"), str(tmp_path / "new")
    async with History(folder, create=True) as history:
        await history.add(TREE)
        for word, begin in (("json", b"{"), ("html", b"<!"), ("md", b"#"), ("zip", b"PK")):
            value: Any = word
            (file,) = (await history.export("imported", str(tmp_path / f"one.{word}"), value)).files
            assert file.read_bytes().lstrip().startswith(begin)
        unknown: Any = "pdf"
        with pytest.raises(WrongUse, match="no format “pdf”"):
            await history.export("imported", str(tmp_path / "one.pdf"), unknown)
        assert not (tmp_path / "one.pdf").exists()
        assert (await history.import_file(str(tmp_path / "one.zip"))).present == 1
        backup = await history.back_up(str(tmp_path / "backups"))
        assert await history.backups(str(tmp_path / "backups")) == (backup,)
    await History.restore(str(backup.folder), into)
    async with History(into) as history:
        assert await history.conversation("imported") == TREE
