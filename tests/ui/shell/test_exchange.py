"""Exporting and importing in the window."""

import json
import sys
import zipfile
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QCheckBox

from desktop_agent.types.provider_events import ContentDelta
from tests.desktop_agent.exchange.readers.foreign_homes import CLAUDE_SESSION, claude_session, write_lines
from tests.desktop_agent.exchange.sample_trees import long_tree
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.ui.bridge.fake_opener import fake_opener
from ui.settings.found_histories import FoundHistoriesDialog
from ui.sidebar.organising import OrganisePresenter
from ui.style.widgets import QuestionBox


def banner_text(screen):
    return "\n".join(screen.words(screen.banners))


async def dialog_of(screen, action):
    screen.action(action).trigger()
    return await until(lambda: screen.desk.exchange()._dialog)


def test_a_conversation_is_exported_in_the_chosen_format(on_screen, tmp_path):
    async def work(screen):
        screen.action("Export this conversation…").trigger()
        await until(lambda: "nothing in this conversation yet" in banner_text(screen))
        await screen.say("precious")
        for words, name in (
            ("Web page", "a.html"),
            ("PDF", "a.pdf"),
            ("Markdown", "a.md"),
            ("Archive", "a.zip"),
            ("JSON", "a.json"),
        ):
            dialog = await dialog_of(screen, "Export this conversation…")
            dialog.selectNameFilter(next(pattern for pattern in dialog.nameFilters() if pattern.startswith(words)))
            dialog.filterSelected.emit(dialog.selectedNameFilter())
            assert dialog.defaultSuffix() == name.partition(".")[2]
            path = tmp_path / name
            dialog.fileSelected.emit(str(path))
            dialog.reject()
            await until(lambda path=path: str(path) in banner_text(screen))
        assert "precious" in (tmp_path / "a.html").read_text()
        assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")
        assert "gold" in (tmp_path / "a.md").read_text()
        assert "conversations.json" in zipfile.ZipFile(tmp_path / "a.zip").namelist()
        (exported,) = json.loads((tmp_path / "a.json").read_text())["conversations"]
        assert exported["title"] == "precious"

    on_screen(work, Turn(ContentDelta("gold")))


def test_a_dialog_that_is_open_comes_to_the_front_when_it_is_wanted_again(on_screen):
    async def work(screen):
        dialog = await dialog_of(screen, "Export all conversations…")
        for again in ("Export all conversations…", "Import conversations…"):
            screen.window.activateWindow()
            await until(screen.window.isActiveWindow)
            assert await dialog_of(screen, again) is dialog
            await until(dialog.isActiveWindow)
        dialog.reject()
        assert screen.desk.exchange()._dialog is None

    on_screen(work)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="xdg-open is Linux's")
def test_the_folder_of_an_export_is_opened(on_screen, monkeypatch, tmp_path):
    opened = fake_opener(tmp_path, monkeypatch, 3)
    (tmp_path / "taken").mkdir()

    async def work(screen):
        await screen.say("precious")
        dialog = await dialog_of(screen, "Export this conversation…")
        dialog.fileSelected.emit(str(tmp_path / "taken" / "a.html"))
        dialog.reject()
        await until(lambda: "Exported to" in banner_text(screen))
        banner = screen.window.banners._shown["exported"].banner
        assert banner.duration_ms is not None, "it stays over every conversation"
        screen.press("Open folder")
        await until(lambda: "could not be opened" in banner_text(screen))
        assert opened() == [f"file://{tmp_path}/taken"]

    on_screen(work, Turn(ContentDelta("gold")))


def test_the_menu_of_one_conversation_offers_all_formats_and_an_ending_that_is_written_counts(on_screen, tmp_path):
    async def work(screen):
        await screen.say("precious")
        for name in ("typed.html", "typed.PDF", "typed.md", "typed.json"):
            screen.window.findChild(OrganisePresenter).act_on("export", [screen.conversation.id])
            dialog = await until(lambda: screen.desk.exchange()._dialog)
            assert [Path(path).name for path in dialog.selectedFiles()] == ["precious.html"]
            archive = next(pattern for pattern in dialog.nameFilters() if pattern.startswith("Archive"))
            dialog.selectNameFilter(archive)
            path = tmp_path / name
            dialog.fileSelected.emit(str(path))
            dialog.reject()
            await until(lambda path=path: str(path) in banner_text(screen))
        assert "precious" in (tmp_path / "typed.html").read_text()
        assert (tmp_path / "typed.PDF").read_bytes().startswith(b"%PDF-")
        assert "gold" in (tmp_path / "typed.md").read_text()
        assert json.loads((tmp_path / "typed.json").read_text())["conversations"]
        screen.window.findChild(OrganisePresenter).act_on("export", [screen.conversation.id, "another"])
        dialog = await until(lambda: screen.desk.exchange()._dialog)
        assert [pattern.partition(" ")[0].rstrip(",") for pattern in dialog.nameFilters()] == [
            "Archive",
            "JSON",
            "Web",
            "PDF",
            "Markdown",
        ]
        dialog.reject()

    on_screen(work, Turn(ContentDelta("gold")))


@pytest.mark.parametrize("suffix", ["html", "pdf"])
def test_a_long_export_shows_how_far_it_is_and_is_stopped(on_screen, tmp_path, suffix):
    tree = long_tree(4000)

    async def work(screen):
        await screen.engine.store.import_tree(tree)
        screen.desk.exchange().export_marked([tree.id], "Long")
        dialog = screen.desk.exchange()._dialog
        dialog.fileSelected.emit(str(tmp_path / f"long.{suffix}"))
        dialog.reject()
        await until(lambda: "Working on your conversations: " in banner_text(screen))
        screen.press("Stop")
        await until(lambda: "Stopped. What was complete by then is kept." in banner_text(screen))
        assert "Working on your conversations" not in banner_text(screen)
        assert not [path for path in tmp_path.iterdir() if path.is_file()]

    on_screen(work)


def test_the_figure_of_progress_changes_in_place_and_stays_closed(on_screen):
    async def work(screen):
        exchange, banners = screen.desk.exchange()._exchange, screen.window.banners
        exchange.progressed.emit(1, 4)
        frame = banners._shown["exchange"]
        exchange.progressed.emit(2, 4)
        assert banners._shown["exchange"] is frame, "it is read aloud again"
        assert "50 % done" in banner_text(screen)
        frame.close_pressed.emit()
        exchange.progressed.emit(3, 4)
        assert "Working on" not in banner_text(screen)
        exchange.ended.emit()
        exchange.progressed.emit(1, 4)
        assert "25 % done" in banner_text(screen)

    on_screen(work)


def test_a_pdf_takes_the_place_of_no_file_of_the_data_folder(on_screen):
    async def work(screen):
        await screen.say("precious")
        database = screen.engine.folder / "conversations.sqlite3"
        header = database.read_bytes()[:16]
        screen.desk.exchange()._exchange.export_pdf(database, screen.conversation.id)
        await until(lambda: "which no export replaces" in banner_text(screen))
        assert database.read_bytes()[:16] == header

    on_screen(work, Turn(ContentDelta("gold")))


def test_an_import_says_what_came_and_what_did_not(on_screen, tmp_path):
    chat = {"uuid": "1", "name": "From elsewhere", "created_at": "2025-01-02T03:04:05Z", "chat_messages": []}
    message = {"uuid": "2", "sender": "human", "created_at": "2025-01-02T03:04:05Z"}
    message["content"] = [{"type": "text", "text": "hello"}]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{**chat, "chat_messages": [message]}, 7]))

    async def work(screen):
        for added, present in ((1, 0), (0, 1)):
            dialog = await dialog_of(screen, "Import conversations…")
            dialog.fileSelected.emit(str(path))
            dialog.reject()
            words = f"Imported conversations: {added}. {'Here already: 1. ' if present else ''}Left out: 1."
            await until(lambda words=words: words in banner_text(screen))
        records = await screen.engine.store.list_conversations()
        assert [record.title for record in records] == ["From elsewhere"]
        screen.press("Details…")
        box = await until(lambda: next(iter(screen.window.findChildren(QuestionBox)), None))
        box.answer_with("copy")
        assert "It is not a conversation." in QApplication.clipboard().text()

    on_screen(work)


def test_a_file_of_another_kind_is_refused_in_words(on_screen, tmp_path):
    (tmp_path / "x.json").write_text("{}")

    async def work(screen):
        dialog = await dialog_of(screen, "Import conversations…")
        dialog.fileSelected.emit(str(tmp_path / "x.json"))
        dialog.reject()
        await until(lambda: "holds no conversations that this version can read" in banner_text(screen))
        await until(lambda: "Working on your conversations" not in banner_text(screen))

    on_screen(work)


def test_what_other_assistants_left_is_offered_and_imported(on_screen, tmp_path, monkeypatch):
    home = tmp_path / "home"
    write_lines(home / ".claude" / "projects" / f"{CLAUDE_SESSION}.jsonl", claude_session())
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)

    async def offered(screen):
        screen.action("Import from other assistants…").trigger()
        return await until(lambda: next(iter(screen.window.findChildren(FoundHistoriesDialog)), None))

    async def work(screen):
        dialog = await offered(screen)
        assert [box.text() for box in dialog.findChildren(QCheckBox)] == ["Claude Code, conversations: 1"]
        box, button = dialog.findChildren(QCheckBox)[0], dialog._import
        box.setChecked(False)
        assert not button.isEnabled()
        box.setChecked(True)
        button.click()
        await until(lambda: "Imported conversations: 1." in banner_text(screen))
        assert ": 0." not in banner_text(screen)
        (record,) = await screen.engine.store.list_conversations()
        assert record.origin.program == "claude-code"
        dialog = await offered(screen)
        screen.window.activateWindow()
        await until(screen.window.isActiveWindow)
        await offered(screen)
        await until(dialog.isActiveWindow)
        assert [other for other in screen.window.findChildren(FoundHistoriesDialog) if other.isVisible()] == [dialog]
        dialog.reject()

    on_screen(work)
