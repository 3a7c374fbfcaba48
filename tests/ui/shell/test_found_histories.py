"""Conversations of other programs in the window: offered once, shown where they are, continued as copies."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QListView

from desktop_agent.conversation.items import UserItem
from desktop_agent.types.provider_events import ContentDelta
from tests.desktop_agent.exchange.readers.foreign_homes import (
    CLAUDE_SESSION,
    claude_entry,
    claude_session,
    write_claude_code,
    write_codex,
    write_lines,
)
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from ui.shell.found_conversations import FoundPresenter
from ui.transcript.rows.message_actions import commands_at


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    write_claude_code(home)
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def files_of(home):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file()}


def banner(screen):
    return "\n".join(screen.words(screen.banners))


async def wait_for_offer(screen):
    presenter = FoundPresenter(screen.desk.library, screen.window)
    await until(lambda: "were found on this computer" in banner(screen))
    return presenter


async def show_found(screen):
    presenter = await wait_for_offer(screen)
    screen.press("Show")
    await until(lambda: presenter._section.rows.rowCount() == 1)
    return presenter


def rows(presenter):
    model = presenter._section.rows
    return [(model.row(number).text, model.row(number).detail) for number in range(model.rowCount())]


def test_it_is_offered_once_and_never_again_after_any_answer(on_screen, home):
    async def work(screen):
        for answer, offers in (("Not now", True), ("Never", False)):
            await screen.engine.change_preferences(
                screen.engine.preferences.model_copy(
                    update={"histories": screen.engine.preferences.histories.model_copy(update={"offered": ()})}
                )
            )
            presenter = await wait_for_offer(screen)
            assert "Conversations of Claude Code were found" in banner(screen)
            screen.press(answer)
            await until(lambda: screen.engine.preferences.histories.offered == ("claude-code",))
            assert screen.engine.preferences.histories.offers is offers
            presenter._show_programs(await presenter._found._histories.programs())
            assert "found" not in screen.banners.keys
            assert rows(presenter) == []
            assert presenter._section.isHidden()

    on_screen(work)


def test_another_program_is_offered_when_it_comes(on_screen, home):
    async def work(screen):
        presenter = await show_found(screen)
        write_codex(home)
        presenter._found.find()
        await until(lambda: "Conversations of Codex were found" in banner(screen))
        screen.press("Show")
        await until(lambda: [title for title, _ in rows(presenter)] == ["Claude Code", "Codex"])

    on_screen(work)


def test_a_folder_is_closed_at_first_and_has_what_is_there_when_it_is_opened(on_screen, home):
    async def work(screen):
        presenter = await show_found(screen)
        section = presenter._section
        assert rows(presenter) == [("Claude Code", "1")]
        section.setCurrentIndex(section.rows.index(0))
        QTest.keyClick(section, Qt.Key.Key_Right)
        await until(lambda: len(rows(presenter)) == 2)
        write_lines(home / ".claude" / "projects" / "other" / "second.jsonl", claude_session())
        QTest.keyClick(section, Qt.Key.Key_Left)
        assert len(rows(presenter)) == 1
        QTest.keyClick(section, Qt.Key.Key_Return)
        await until(lambda: len(rows(presenter)) == 3)
        assert rows(presenter)[0] == ("Claude Code", "2")

    on_screen(work)


async def in_place(screen):
    presenter = await show_found(screen)
    section = presenter._section
    section._toggle("claude-code")
    await until(lambda: section.rows.rowCount() == 2)
    section._choose(section.rows.index(1))
    await until(lambda: screen.desk.library.current is not None and screen.desk.library.current.is_found)
    return presenter


def test_a_conversation_is_read_in_place_and_nothing_is_written(on_screen, home):
    files_before = files_of(home)

    async def work(screen):
        presenter = await in_place(screen)
        assert presenter._bar._words.text() == "From Claude Code, read only."
        assert presenter._bar.isVisible()
        assert not screen.window.frame.composer.isVisible()
        assert len(screen.desk.library.current.transcript) > 2
        assert await screen.engine.store.list_conversations() == ()
        screen.desk.library.new()
        await until(lambda: not screen.desk.library.current.is_found)
        assert screen.window.frame.composer.isVisible()
        assert presenter._bar.isHidden()

    on_screen(work)
    assert files_of(home) == files_before


def texts(screen):
    return [item.text for item in screen.conversation.transcript if isinstance(item, UserItem)]


def commands(screen, text):
    rows = screen.window.page.transcript.row_viewport.rows
    place = next(index for index, item in enumerate(rows.transcript) if getattr(item, "text", "") == text)
    return {command.name: command for command in commands_at(rows.transcript, place, rows.render_context)}


async def walk(screen, text, name, expected):
    commands(screen, text)[name].run()
    await until(lambda: expected in texts(screen))
    await screen.idle()


def test_other_versions_are_walked_in_place_and_nothing_can_be_changed(on_screen, home):
    files_before = files_of(home)

    async def work(screen):
        await in_place(screen)
        await screen.idle()
        assert texts(screen) == ["What does a.py do?", "/review a.py"]
        last = commands(screen, "/review a.py")
        assert last["Next version"].refusal == "This is the newest version."
        assert last["Edit"].refusal.startswith("From Claude Code, read only.")
        await walk(screen, "/review a.py", "Previous version", "Make it y.")
        assert texts(screen) == ["What does a.py do?", "Make it y."]
        assert commands(screen, "Make it y.")["Previous version"].refusal == "This is the first version."
        await walk(screen, "Make it y.", "Next version", "/review a.py")
        assert banner(screen) == ""

    on_screen(work)
    assert files_of(home) == files_before


def test_it_is_continued_in_a_copy_that_says_where_it_is_from(on_screen, home):
    async def work(screen):
        presenter = await in_place(screen)
        title = screen.desk.library.current.title
        presenter._bar._button.click()
        presenter._bar._button.click()  # there is one copy all the same
        await until(lambda: not screen.desk.library.current.is_found)
        (record,) = await screen.engine.store.list_conversations()
        assert (record.title, record.origin.program, record.origin.id) == (title, "claude-code", CLAUDE_SESSION)
        assert [source.name for source in record.state.outside] == ["an imported conversation"]
        await screen.say("And now?")
        assert screen.answers()[-1] == "gold"

    on_screen(work, Turn(ContentDelta("gold")))


def test_a_program_is_switched_off_in_the_settings(on_screen, home):
    async def work(screen):
        presenter = await show_found(screen)
        dialog = screen.desk._settings_presenter.show("histories")
        box = await until(lambda: dialog.histories._boxes.get("claude-code"))
        assert box.isChecked()
        box.click()
        await until(lambda: rows(presenter) == [])
        assert screen.engine.preferences.histories.shown == ()
        box.click()
        await until(lambda: rows(presenter) == [("Claude Code", "1")])

    on_screen(work)


def test_a_file_that_is_gone_is_said(on_screen, home):
    async def work(screen):
        presenter = await show_found(screen)
        section = presenter._section
        section._toggle("claude-code")
        await until(lambda: section.rows.rowCount() == 2)
        next(home.rglob("*.jsonl")).unlink()
        section._choose(section.rows.index(1))
        await until(lambda: "cannot be read: it is not there any more" in banner(screen))

    on_screen(work)


def test_the_draft_of_a_new_conversation_outlives_what_is_read_in_place(on_screen, home):
    async def work(screen):
        screen.editor.setPlainText("half a thought")
        await screen.idle()
        await in_place(screen)
        await screen.idle()
        screen.window.page.composer.editor.setPlainText("typed")
        await screen.idle()
        await screen.window.page.save_draft_immediately()
        screen.desk.library.new()
        await screen.idle()
        assert screen.editor.toPlainText() == "half a thought"

    on_screen(work)


def test_what_is_read_in_place_is_not_exported_renamed_or_deleted(on_screen, home):
    async def work(screen):
        await in_place(screen)
        for change in (
            screen.action("Export this conversation…").trigger,
            screen.action("Delete this conversation").trigger,
            screen.action("Rename this conversation").trigger,
            lambda: screen.desk.library.rename(screen.desk.library.current.id, "mine"),
        ):
            change()
            await until(lambda: "of another program is only read here" in banner(screen))
            assert "There is no conversation" not in banner(screen)
            screen.banners.clear()

    on_screen(work)


async def search(screen, words):
    """Show the found conversations and search them with the field of the sidebar."""
    presenter = await show_found(screen)
    screen.desk.library.found.start_indexing()
    screen.action("Search conversations").trigger()
    field = screen.find(QLineEdit, "Search conversations")
    QTest.keyClicks(field, words)
    results = await screen.wait_for(QListView, "Search results")
    await until(lambda: results.rows.rowCount() > 0 and results.rows.row(0).conversation_id)
    return presenter, field, results


def test_a_message_is_found_marked_with_the_program_and_opened_at_its_place(on_screen, home):
    files_before = files_of(home)

    async def work(screen):
        _, field, results = await search(screen, "sets x")
        title, hit = results.rows.row(0), results.rows.row(1)
        assert (title.detail, title.spoken) == ("Claude Code", f"{title.text}, Claude Code")
        QTest.keyClick(field, Qt.Key.Key_Down)
        QTest.keyClick(results, Qt.Key.Key_Down)
        QTest.keyClick(results, Qt.Key.Key_Return)
        bar = await screen.wait_for(QLineEdit, "Find in conversation")
        assert screen.conversation.is_found
        assert bar.text() == "sets x"
        await until(lambda: bar.accessibleDescription() == "1 of 1")
        place = screen.conversation.index_of_message(hit.hit.message_id)
        await until(lambda: screen.window.page.transcript.finder._current == (place, 0))

    on_screen(work)
    assert files_of(home) == files_before


def test_a_message_of_a_version_that_is_not_in_view_is_opened_at_its_place(on_screen, home):
    async def work(screen):
        _, _, results = await search(screen, "Make it y")
        row = results.rows.row(1)
        for _ in range(2):
            results.hit_chosen.emit(row.conversation_id, row.hit, "Make it y")
            await until(lambda: "Make it y." in texts(screen))
            place = screen.conversation.index_of_message(row.hit.message_id)
            await until(lambda place=place: screen.window.page.transcript.finder._current == (place, 0))
            await walk(screen, "Make it y.", "Next version", "/review a.py")

    on_screen(work)


def test_a_message_that_is_gone_since_is_said_so(on_screen, home):
    async def work(screen):
        _, _, results = await search(screen, "sets x")
        row = results.rows.row(1)
        results.hit_chosen.emit(row.conversation_id, replace(row.hit, message_id="gone"), "sets x")
        await until(lambda: "not in this conversation any more" in banner(screen))
        assert screen.conversation.is_found

    on_screen(work)


def test_what_was_written_since_it_is_open_is_shown_at_its_place_too(on_screen, home):
    async def work(screen):
        _, _, results = await search(screen, "sets x")
        row = results.rows.row(1)
        results.hit_chosen.emit(row.conversation_id, row.hit, "sets x")
        bar = await screen.wait_for(QLineEdit, "Find in conversation")
        await until(lambda: bar.accessibleDescription() == "1 of 1")
        before = screen.conversation
        last = next(entry["uuid"] for entry in reversed(claude_session()) if entry["type"] == "assistant")
        write_claude_code(home, [*claude_session(), claude_entry("user", "later", last, "a lighthouse")])
        results.hit_chosen.emit(row.conversation_id, replace(row.hit, message_id="later"), "lighthouse")
        await until(lambda: bar.text() == "lighthouse" and bar.accessibleDescription() == "1 of 1")
        assert screen.conversation is not before
        assert screen.conversation.index_of_message("later") is not None

    on_screen(work)


def test_what_is_switched_off_is_found_no_more_and_its_index_is_gone(on_screen, home):
    async def work(screen):
        presenter, field, results = await search(screen, "sets x")
        folder = screen.engine.store.folder
        assert list(folder.glob("search-found*")) != []
        presenter._found.show_program("claude-code", False)
        await until(lambda: list(folder.glob("search-found*")) == [])
        await until(lambda: results.rows.row(0).conversation_id == "")
        assert field.text() == "sets x"

    on_screen(work)


def test_what_was_chosen_while_it_is_copied_stays_and_the_copy_is_listed(on_screen, home):
    async def work(screen):
        presenter = await in_place(screen)
        presenter._bar._button.click()
        screen.desk.library.new()
        await screen.idle()
        assert screen.conversation.is_empty
        (copied,) = await screen.engine.store.list_conversations()
        await until(lambda: screen.desk.library.listing.has(copied.id))

    on_screen(work)
