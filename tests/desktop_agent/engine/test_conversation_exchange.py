"""Exports and imports that are cancelled have ended when the cancel is passed on, and leave nothing half-written."""

import asyncio
import gc
import os
import threading
import time
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from desktop_agent.engine.exchange.conversation_exchange import ConversationExchange, ExportFormat
from desktop_agent.engine.exchange.export_paths import ExportFolder
from desktop_agent.exchange.archive import picture_name
from desktop_agent.exchange.print_export import PrintedPart
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import DiskFull, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, Role
from tests.desktop_agent.exchange.sample_trees import GREEN, full_tree, long_tree, stored
from tests.desktop_agent.storage.test_conversation_trees import TREE

BEFORE = FileState(digest=sha256(b"before").hexdigest())


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "data")
    for number in range(20):
        await store.import_tree(TREE.model_copy(update={"id": str(number)}))
    yield store
    await store.close()


class Step:
    """Called by the work in its thread: the second call waits a moment, and the test cancels meanwhile."""

    def __init__(self) -> None:
        self.calls = 0
        self.reached = threading.Event()

    def __call__(self, done: int, total: int) -> None:
        del done, total
        self.calls += 1
        if self.calls == 2:
            self.reached.set()
            time.sleep(0.2)


async def cancelled(work: Any, step: Step) -> list[Any]:
    """Cancel the work in its second step; return what asyncio complains about."""
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    task = asyncio.ensure_future(work)
    await asyncio.to_thread(step.reached.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("exchange")]
    del task, work
    gc.collect()
    return complaints


@pytest.mark.parametrize("export_format", ExportFormat)
async def test_an_export_that_is_cancelled_has_ended(store: Store, tmp_path: Path, export_format: ExportFormat) -> None:
    step, target = Step(), tmp_path / "out" / "target"
    target.parent.mkdir()
    exchange = ConversationExchange(store)
    ids = [str(number) for number in range(20)]
    assert await cancelled(exchange.export(ids, target, export_format, step), step) == []
    assert step.calls == 2
    assert not [path for path in target.parent.rglob("*") if path.name.startswith(".")]
    assert not target.is_file()


async def test_the_export_of_one_long_conversation_ends_at_its_next_turn(store: Store, tmp_path: Path) -> None:
    step, target = Step(), tmp_path / "long.html"
    exchange = ConversationExchange(store)
    assert await cancelled(exchange.export([long_tree(100)], target, ExportFormat.HTML, step), step) == []
    assert step.calls == 2
    assert not target.exists()


async def test_the_export_of_one_conversation_tells_its_turns(store: Store, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    exchange = ConversationExchange(store)
    await exchange.export([long_tree(4)], tmp_path / "a.html", ExportFormat.HTML, tell)
    assert told == [(0, 1), (0, 4), (1, 4), (2, 4), (3, 4)]
    told.clear()
    await exchange.export([long_tree(4), long_tree(4)], tmp_path / "two", ExportFormat.HTML, tell)
    assert told == [(0, 2), (1, 2)]


async def test_an_import_that_is_cancelled_has_ended(store: Store, tmp_path: Path) -> None:
    exchange = ConversationExchange(store)
    await exchange.export([str(number) for number in range(20)], tmp_path / "a.json", ExportFormat.JSON)
    step = Step()
    empty = await Store.open(tmp_path / "empty")
    try:
        work = ConversationExchange(empty).import_file(tmp_path / "a.json", step)
        assert await cancelled(work, step) == []
        assert step.calls == 2
    finally:
        await empty.close()


@pytest.mark.parametrize("export_format", ExportFormat)
async def test_what_another_process_deletes_meanwhile_is_left_out_and_named(
    store: Store, tmp_path: Path, export_format: ExportFormat
) -> None:
    other, loop = await Store.open(tmp_path / "data"), asyncio.get_running_loop()

    async def delete() -> None:
        await other.delete_conversation("3")
        await other.purge_conversation("3")

    def delete_at_second(done: int, _: int) -> None:
        if done == 1:
            asyncio.run_coroutine_threadsafe(delete(), loop).result()

    exchange, ids = ConversationExchange(store), [str(number) for number in range(5)]
    target = tmp_path / "out"
    result = await exchange.export(ids, target, export_format, delete_at_second)
    await other.close()
    assert result.gone == ("3",)
    if target.is_dir():
        assert len(result.files) == len(list(target.glob(f"*.{export_format}"))) == 4
    else:
        assert len((await exchange.import_file(target)).added) == 0
        assert (await exchange.import_file(target)).present == 4
    for wanted_ids in (["3"], ["3", "nothing"]):
        with pytest.raises(WrongUse, match="There is no conversation"):
            await exchange.export(wanted_ids, tmp_path / "none.json", ExportFormat.JSON)
    assert not (tmp_path / "none.json").exists()


async def test_nothing_in_a_folder_is_replaced_by_an_export_into_it(store: Store, tmp_path: Path) -> None:
    for number in (1, 2):
        await store.import_tree(TREE.model_copy(update={"id": f"same-{number}", "title": "Same"}))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "Same.md").write_text("mine")
    result = await ConversationExchange(store).export(["same-1", "same-2"], folder, ExportFormat.MARKDOWN)
    assert [path.name for path in result.files] == ["Same 2.md", "Same 3.md"]
    assert (folder / "Same.md").read_text() == "mine"


@pytest.mark.parametrize("export_format", ExportFormat)
async def test_one_conversation_can_be_exported_into_a_folder_that_is_there(
    store: Store, tmp_path: Path, export_format: ExportFormat
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    if export_format in {ExportFormat.MARKDOWN, ExportFormat.HTML}:
        (path,) = (await ConversationExchange(store).export(["1"], folder, export_format)).files
        assert path.parent == folder
    else:
        with pytest.raises(StorageFailed, match="is a folder"):
            await ConversationExchange(store).export(["1"], folder, export_format)


@pytest.mark.parametrize("export_format", [ExportFormat.MARKDOWN, ExportFormat.HTML])
async def test_several_conversations_become_a_folder_without_the_ending_of_a_file(
    store: Store, tmp_path: Path, export_format: ExportFormat
) -> None:
    exchange, target = ConversationExchange(store), tmp_path / f"all.{export_format.value}"
    for _ in range(2):
        files = (await exchange.export(["1", "2"], target, export_format)).files
        assert {path.parent for path in files} == {tmp_path / "all"}
    (tmp_path / "notes").write_text("mine")
    for taken in ("notes", f"notes.{export_format.value}"):
        with pytest.raises(StorageFailed, match="notes” is a file"):
            await exchange.export(["1", "2"], tmp_path / taken, export_format)
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize("export_format", [ExportFormat.MARKDOWN, ExportFormat.JSON])
async def test_an_export_into_a_missing_folder_says_that_it_is_missing(
    store: Store, tmp_path: Path, export_format: ExportFormat
) -> None:
    with pytest.raises(StorageFailed, match="There is no folder") as caught:
        await ConversationExchange(store).export(["1"], tmp_path / "missing" / "a", export_format)
    assert str(caught.value.remedy) == "Make it, or choose another one."


async def test_no_picture_is_left_of_an_export_that_is_refused(store: Store, tmp_path: Path) -> None:
    picture = stored(GREEN)
    store.pictures.write(picture.digest, picture.media_type, GREEN)
    exchange, tree = ConversationExchange(store), full_tree()
    with pytest.raises(StorageFailed, match="There is no folder"):
        await exchange.export([tree], tmp_path / "missing" / "a.md", ExportFormat.MARKDOWN)
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "pipe.md")
    with pytest.raises(StorageFailed, match="not an ordinary file"):
        await exchange.export([tree], folder / "pipe.md", ExportFormat.MARKDOWN)
    assert {path.name for path in folder.iterdir()} == {"pipe.md"}


async def test_a_link_in_the_place_of_a_picture_is_replaced(store: Store, tmp_path: Path) -> None:
    picture = stored(GREEN)
    store.pictures.write(picture.digest, picture.media_type, GREEN)
    target, planted = tmp_path / "kept", tmp_path / picture_name(picture)
    target.write_text("of somebody else")
    planted.parent.mkdir()
    planted.symlink_to(target)
    await ConversationExchange(store).export([full_tree()], tmp_path / "a.md", ExportFormat.MARKDOWN)
    assert (planted.is_symlink(), planted.read_bytes()) == (False, GREEN)
    assert target.read_text() == "of somebody else"


@pytest.mark.parametrize(
    ("title", "name"),
    [("a\u202egnp.exe", "agnp.exe.md"), ("CON", "CON_.md"), ("nul.txt", "nul_.txt.md"), ("Console", "Console.md")],
)
def test_no_title_makes_a_name_that_deceives_or_that_windows_keeps_for_devices(
    tmp_path: Path, title: str, name: str
) -> None:
    assert ExportFolder(tmp_path, "md").path_for(title).name == name


async def test_no_export_takes_the_place_of_the_database(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    for name in ("data", "link"):
        with pytest.raises(StorageFailed, match="data folder"):
            await ConversationExchange(store).export(["1"], tmp_path / name / DATABASE_NAME, ExportFormat.JSON)
    await ConversationExchange(store).export(["1"], tmp_path / "data" / "new.json", ExportFormat.JSON)
    assert len(await store.list_conversations()) == 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs what is no plain file")
@pytest.mark.parametrize("export_format", ExportFormat)
async def test_no_export_takes_the_place_of_what_is_no_file(
    store: Store, tmp_path: Path, export_format: ExportFormat
) -> None:
    # As /dev/null is one.
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(StorageFailed, match="not an ordinary file"):
            await ConversationExchange(store).export(["1"], tmp_path / name, export_format)
        assert (tmp_path / name).is_fifo()


@pytest.mark.parametrize(
    ("call", "summary", "lines"),
    [
        (
            ToolUse(id="1", name="edit_file", input={"path": "a.py", "old_text": "x = 1\ny", "new_text": "x = 2\ny"}),
            "a.py +1 −1",
            "-x = 1\n+x = 2\n y",
        ),
        # It may have replaced a file of a thousand lines.
        (ToolUse(id="1", name="write_file", input={"path": "a.py", "content": "x = 2\n"}), "a.py +1", "+x = 2"),
    ],
)
async def test_the_page_shows_what_a_call_changed_in_a_file(
    store: Store, tmp_path: Path, call: ToolUse, summary: str, lines: str
) -> None:
    result = ToolResult(tool_use_id="1", outcome=Outcome.SUCCEEDED, content=(Text(text="ok"),))
    record = await store.create_conversation(title="changes")
    for message in (
        Message.user("go"),
        Message(role=Role.ASSISTANT, blocks=(call,)),
        Message(role=Role.TOOL, blocks=(result,)),
    ):
        await store.commit(record.id, message)
    await ConversationExchange(store).export([record.id], tmp_path / "a.html", ExportFormat.HTML)
    card = LexborHTMLParser((tmp_path / "a.html").read_text("utf-8")).css_first("details.card")
    assert card.css_first(".arguments").text() == summary
    diff = card.css_first("figure")
    assert (diff.css_first("figcaption").text(), diff.css_first("pre").text()) == ("a.py", lines)
    colours = {"-": "keyword", "+": "string"}
    assert {part.attributes["class"] for part in diff.css("span")} == {
        colours[line[0]] for line in lines.splitlines() if line[0] in colours
    }


@pytest.mark.parametrize(
    ("file", "outcome", "summary", "text"),
    [
        ({"after": FileState(digest="b"), "lines": (1, 5)}, Outcome.SUCCEEDED, "a.py +1 −5", "x = 2"),
        ({"after": BEFORE, "lines": (0, 0)}, Outcome.SUCCEEDED, "a.py · nothing changed", "x = 2"),
        ({"after": FileState(digest="b"), "lines": (1, 5)}, Outcome.FAILED, "a.py +1 −5", "x = 2"),
        ({"after": None}, Outcome.FAILED, "a.py", "+x = 2"),
    ],
)
async def test_the_page_and_the_printed_one_say_what_really_changed_in_the_file(
    store: Store, tmp_path: Path, file: dict[str, Any], outcome: Outcome, summary: str, text: str
) -> None:
    record = await store.create_conversation(title="changes")
    call = ToolUse(id="1", name="write_file", input={"path": "a.py", "content": "x = 2\n"})
    answer = Message(role=Role.ASSISTANT, blocks=(call,))
    result = ToolResult(tool_use_id="1", outcome=outcome, content=(Text(text="ok"),))
    for message in (Message.user("go"), answer, Message(role=Role.TOOL, blocks=(result,))):
        await store.commit(record.id, message)
    assert await store.blobs.put(b"before") == BEFORE.digest
    saved = SavedFile(path="a.py", before=BEFORE, **file)
    await store.checkpoints.save(
        Checkpoint(
            id="c",
            conversation_id=record.id,
            tool_use_id="1",
            message_id=answer.id,
            workspace="",
            created_at=answer.created_at,
            files=(saved,),
        )
    )
    exchange, printed = ConversationExchange(store), list[str]()
    await exchange.export([record.id], tmp_path / "a.html", ExportFormat.HTML)
    card = LexborHTMLParser((tmp_path / "a.html").read_text("utf-8")).css_first("details.card")
    assert (card.css_first(".arguments").text(), card.css_first("figure pre").text()) == (summary, text)

    async def show(part: PrintedPart) -> None:
        printed.append(part.html)

    await exchange.print_parts(record.id, show)
    assert summary in LexborHTMLParser("".join(printed)).text()


async def test_the_page_says_what_was_undone(store: Store, tmp_path: Path) -> None:
    record = await store.create_conversation(title="changes")
    answer = Message(
        role=Role.ASSISTANT,
        blocks=tuple(ToolUse(id=id_, name="write_file", input={"path": id_, "content": "x"}) for id_ in "abc"),
    )
    results = tuple(ToolResult(tool_use_id=id_, outcome=Outcome.SUCCEEDED) for id_ in "abc")
    for message in (Message.user("go"), answer, Message(role=Role.TOOL, blocks=results)):
        await store.commit(record.id, message)
    assert await store.blobs.put(b"before") == BEFORE.digest
    undone: dict[str, Any] = {"restored": True}
    steps: list[tuple[str, str, dict[str, Any]]] = [("a", "", {}), ("b", "", undone), ("c", "", undone)]
    steps += [("c", "c", {"is_redo": True, **undone}), ("c", "redo of c", {})]
    for position, (id_, undoes, state) in enumerate(steps):
        file = SavedFile(path=id_, before=BEFORE, after=FileState(digest="b"), lines=(1, 0))
        await store.checkpoints.save(
            Checkpoint(
                id=str(position),
                conversation_id=record.id,
                tool_use_id=id_,
                message_id=answer.id,
                workspace="",
                created_at=answer.created_at,
                files=(file,),
                undoes=undoes or None,
                **state,
            )
        )
    await ConversationExchange(store).export([record.id], tmp_path / "a.html", ExportFormat.HTML)
    page = LexborHTMLParser((tmp_path / "a.html").read_text("utf-8"))
    assert [mark.text() for mark in page.css("details.card .state")] == ["✓ Done", "✓ Undone", "✓ Done"]


async def test_an_export_takes_the_place_of_a_link_that_leads_to_itself(store: Store, tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to("loop.json")
    await ConversationExchange(store).export(["1"], tmp_path / "loop.json", ExportFormat.JSON)
    assert (tmp_path / "loop.json").is_file()


async def test_an_export_through_a_link_keeps_the_link(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    await ConversationExchange(store).export(["1"], tmp_path / "link.json", ExportFormat.JSON)
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").stat().st_size


async def test_an_import_that_a_full_disk_stops_says_how_many_came(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.json"
    await ConversationExchange(store).export([str(number) for number in range(5)], target, ExportFormat.JSON)
    other = await Store.open(tmp_path / "other")
    whole = other.import_tree
    came: list[str] = []

    async def refuse_the_fourth(tree: ConversationTree) -> bool:
        if len(came) == 3:
            raise DiskFull("There is no room on the disk.")
        came.append(tree.id)
        return await whole(tree)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(other, "import_tree", refuse_the_fourth)
            with pytest.raises(DiskFull, match="Imported before that, and kept: 3") as refused:
                await ConversationExchange(other).import_file(target)
            assert "Then import again" in str(refused.value.remedy)
        assert len(await other.list_conversations()) == 3
        result = await ConversationExchange(other).import_file(target)
        assert (len(result.added), result.present) == (2, 3)
    finally:
        await other.close()


async def test_no_file_says_where_the_tools_of_a_conversation_work(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    await ConversationExchange(store).export(["0", "1"], target, ExportFormat.JSON)
    assert b"/somewhere" in target.read_bytes()
    other = await Store.open(tmp_path / "other")
    try:
        result = await ConversationExchange(other).import_file(target)
        assert [record.workspace for record in await other.list_conversations()] == [None, None]
        assert [(str(sentence)[:21], count) for sentence, count in result.report.notes] == [
            ("Workspace folders: th", 2)
        ]
    finally:
        await other.close()
