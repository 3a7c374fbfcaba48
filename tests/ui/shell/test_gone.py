"""Nothing of a conversation that is never stored, or was deleted for good, is in any byte that we have written."""

import tempfile

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest

from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.search import SearchQuery
from tests.desktop_agent.exchange.readers.foreign_homes import claude_entry, write_claude_code
from tests.fakes.markers import files_with
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn

MARK = "quaxolotl"
WRITE = ToolUse(id="w1", name="write_file", input={"path": "a.txt", "content": f"{MARK} new"})
TURNS = (Turn(ContentDelta(f"{MARK} I write"), WRITE), Turn(ContentDelta(f"{MARK} done")))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Set up all folders that the program writes to, and a workspace whose file is saved before it is changed."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    for name in "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR":
        (tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text(f"{MARK} old")
    return tmp_path


def files_with_the_mark(folders):
    """Return the files that contain the mark, except those of the workspace."""
    return files_with(MARK, [folders], [folders / "work"])


async def use_everything(screen, folders):
    """Produce a prompt with a picture, an answer, a call with a checkpoint, a title, an index and a draft."""
    screen.engine.store.search.start_indexing()
    screen.conversation.change(workspace=str(folders / "work"))
    screen.conversation.session_controls.set_mode("accept-edits")
    picture = QImage(40, 40, QImage.Format.Format_RGB32)
    picture.fill(QColor("teal"))
    picture.setText("Comment", MARK)
    screen.window.page.composer.attachments.add_pasted(picture)
    await until(lambda: screen.window.page.composer.draft()[1])
    await screen.say(f"{MARK} hello")
    assert (folders / "work" / "a.txt").read_text() == f"{MARK} new"
    screen.conversation.change(title=f"{MARK} title")
    screen.write(f"{MARK} draft")
    await screen.idle()
    await screen.engine.write_all()
    await screen.engine.store.search.index_all()
    await screen.engine.store.search.find(SearchQuery(MARK))


def test_nothing_of_one_that_is_never_stored_is_written(on_screen, folders):
    async def work(screen):
        keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        QTest.keyClick(screen.window, Qt.Key.Key_N, keys)
        await until(lambda: screen.conversation.is_in_memory)
        await screen.idle()
        await use_everything(screen, folders)
        assert files_with_the_mark(folders) == []
        assert list((folders / "data").glob("pictures/*/*")) == []
        screen.desk.library.close_unstored(screen.conversation.id)
        await screen.idle()
        assert files_with_the_mark(folders) == []

    on_screen(work, *TURNS)
    assert files_with_the_mark(folders) == []


def test_a_pdf_of_one_that_is_never_stored_has_all_of_it_and_leaves_nothing_behind(on_screen, folders):
    async def work(screen):
        keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        QTest.keyClick(screen.window, Qt.Key.Key_N, keys)
        await until(lambda: screen.conversation.is_in_memory)
        await screen.idle()
        await use_everything(screen, folders)
        results, exchange = [], screen.desk.exchange()._exchange
        exchange.exported.connect(results.append)
        exchange.export_pdf(folders / "work" / "a.pdf", screen.conversation.id)
        await until(lambda: results)
        assert results[0].lost_pictures == 0
        assert b"/Subtype /Image" in (folders / "work" / "a.pdf").read_bytes()
        assert {path.name for path in (folders / "work").iterdir()} == {"a.txt", "a.pdf"}
        screen.desk.library.close_unstored(screen.conversation.id)
        await screen.idle()
        assert files_with_the_mark(folders) == []

    on_screen(work, *TURNS)
    assert files_with_the_mark(folders) == []


def test_nothing_of_one_that_was_deleted_for_good_is_left(on_screen, folders):
    async def work(screen):
        await use_everything(screen, folders)
        store, id_ = screen.engine.store, screen.conversation.id
        names = {path.name.split(".")[0] for path in files_with_the_mark(folders)}
        assert {"conversations", "search"} <= names
        assert len(names) > 2, "the saved file"
        assert len(list((folders / "data").glob("pictures/*/*"))) == 1
        screen.action("Delete this conversation").trigger()
        await until(lambda: screen.conversation.id != id_)
        await screen.idle()
        screen.desk.library.trash.empty()
        await screen.idle()
        await store.search.index_all()
        assert await store.search.find(SearchQuery(MARK)) is not None
        assert files_with_the_mark(folders) == []
        assert list((folders / "data").glob("pictures/*/*")) == []

    on_screen(work, *TURNS)
    assert files_with_the_mark(folders) == []


def test_nothing_of_another_program_is_left_when_its_conversations_are_shown_no_more(on_screen, folders, monkeypatch):
    home = folders / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    write_claude_code(home, [claude_entry("user", "u1", None, f"{MARK} harbour")])

    def files_with_mark():
        return files_with(MARK, [folders], [folders / "work", home])

    async def work(screen):
        found_conversations, search = screen.desk.library.found, screen.engine.store.search
        found_conversations.start_indexing()
        found_conversations.show_program("claude-code", True)
        screen.action("Search conversations").trigger()
        screen.window.sidebar._search.setText(f"{MARK} harbour")
        await until(lambda: [path.name.split(".")[0] for path in files_with_mark()] != [])
        assert {path.name.split(".")[0] for path in files_with_mark()} == {"search-found"}
        await until(lambda: len(screen.window.sidebar._results.rows.row(0).conversation_id) > 0)
        found_conversations.show_program("claude-code", False)
        await until(lambda: files_with_mark() == [])
        assert search.found.titles == {}

    on_screen(work)
    assert files_with_mark() == []
