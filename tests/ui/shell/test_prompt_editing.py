"""An earlier prompt is edited in its place; the draft comes back."""

import asyncio

from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QAccessible, QContextMenuEvent, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFrame, QWidget

from desktop_agent.conversation.items import UserItem
from desktop_agent.types.errors import Sentence, StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import held, until
from tests.fakes.scripted_provider import Turn, Wait
from tests.ui.shell.test_branches import commands, run, settled, turns, view
from tests.ui.shell.test_draft_pictures import png
from tests.ui.shell.test_drafts import composer, show
from tests.ui.shell.test_found_histories import home, in_place
from ui.transcript.find.matches import Query

__all__ = ["home"]


def bar(screen):
    return screen.find(QFrame, "Editing an earlier message")


def place(screen):
    return view(screen).in_place_editor


def row_box(screen, row):
    """Return the box of the row on the screen, without the space above it."""
    viewport = view(screen).row_viewport
    box = viewport.row_box(row)
    box.setTop(box.top() + viewport.rows.row(row).stack.above)
    return box.translated(viewport.widget.mapToGlobal(QPoint(0, 0)))


def editor_box(screen):
    return QRect(composer(screen).mapToGlobal(QPoint(0, 0)), composer(screen).size())


def is_over(screen, row):
    """Whether the composer is where that row is, and the next row below it."""
    editor, box = editor_box(screen), row_box(screen, row)
    return editor.topLeft() == box.topLeft() and editor.width() == box.width() and editor.height() < box.height()


def prompts(screen):
    return [item.text for item in screen.conversation.transcript if isinstance(item, UserItem)]


async def edit(screen, row=0):
    commands(screen, row)["Edit"].run()
    await until(lambda: bar(screen))


async def send(screen):
    QTest.keyClick(screen.editor, Qt.Key.Key_Return)
    await until(lambda: bar(screen) is None)
    await until(lambda: len(screen.provider.requests) == screen.expected)
    await settled(screen)


def test_a_prompt_is_edited_and_sent_in_its_place(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        screen.write("draft")
        await edit(screen)
        assert screen.editor.toPlainText() == "a"
        assert screen.editor.hasFocus()
        assert place(screen).isVisible()
        screen.write("lpha")
        screen.expected = 3
        await send(screen)
        assert prompts(screen) == ["alpha"]
        assert screen.answers() == ["three"]
        assert screen.editor.toPlainText() == "draft"
        assert not place(screen).isVisible()
        await run(screen, "Previous version", 0)
        assert prompts(screen) == ["a", "b"]

    on_screen(work, *turns("one", "two", "three"))


def test_escape_brings_the_draft_back_and_what_was_changed_was_behind_it_on_the_disk(on_screen):
    async def work(screen):
        await screen.say("a")
        screen.write("draft")
        await until(lambda: screen.kept_draft() == "draft")
        await edit(screen)
        screen.write("lpha")
        await until(lambda: screen.kept_draft() == "draft\n\nalpha")
        QTest.keyClick(screen.editor, Qt.Key.Key_Escape)
        assert bar(screen) is None
        assert screen.editor.toPlainText() == "draft"
        assert prompts(screen) == ["a"]
        await until(lambda: screen.kept_draft() == "draft")

    on_screen(work, *turns("one"))


def test_its_pictures_come_along_and_can_be_removed(on_screen):
    async def work(screen):
        composer(screen).attachments.add_pasted(png())
        await until(lambda: composer(screen).draft()[1])
        await screen.say("a")
        await edit(screen)
        assert len(composer(screen).attachments.chips) == 1
        screen.expected = 2
        await send(screen)
        assert len(screen.conversation.transcript[0].images) == 1
        await edit(screen)
        composer(screen).attachments.clear()
        screen.expected = 3
        await send(screen)
        assert screen.conversation.transcript[0].images == ()
        assert "3" in "".join(part for part in footer_texts(screen, 0))

    on_screen(work, *turns("one", "two", "three"))


def footer_texts(screen, row):
    rows = view(screen).row_viewport.rows
    rows.settle()
    return [part for part, _ in rows.row(row).footer._placed if isinstance(part, str)]


def test_a_picture_added_to_it_is_among_what_is_not_saved_yet(on_screen):
    async def work(screen):
        await screen.say("a")
        screen.write("draft")
        await edit(screen)
        assert screen.window.page.unsaved_draft.record.text == "draft"
        composer(screen).attachments.add_pasted(png())
        await until(lambda: composer(screen).written()[1])
        unsaved = screen.window.page.unsaved_draft
        assert (unsaved.record.text, len(unsaved.pictures)) == ("draft\n\na", 1)

    on_screen(work, *turns("one"))


def test_up_in_an_empty_editor_edits_the_last_prompt(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        screen.editor.setFocus()
        QTest.keyClick(screen.editor, Qt.Key.Key_Up)
        await until(lambda: bar(screen))
        assert screen.editor.toPlainText() == "b"
        screen.press("Cancel editing")
        assert screen.editor.toPlainText() == ""

    on_screen(work, *turns("one", "two"))


def test_it_waits_while_the_model_works(on_screen):
    async def work(screen):
        await screen.say("a")
        await edit(screen)
        screen.conversation.send(Message.user("b"))
        await wait.reached.wait()
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        assert "The model is still working. Wait, or press Stop first." in screen.words()
        assert bar(screen) is not None
        assert screen.editor.toPlainText() == "a"
        wait.until.set()
        await settled(screen)
        screen.expected = 3
        await send(screen)
        assert prompts(screen) == ["a"]

    wait = Wait(asyncio.Event(), asyncio.Event())
    on_screen(work, *turns("one"), Turn(wait, ContentDelta("two")), *turns("three"))


def test_what_was_changed_goes_behind_the_draft_when_another_conversation_is_shown(on_screen):
    async def work(screen):
        await screen.say("a")
        first = screen.conversation.id
        screen.write("draft")
        await edit(screen)
        screen.write("lpha")
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.idle()
        assert bar(screen) is None
        assert screen.editor.toPlainText() == ""
        await show(screen, first)
        assert screen.editor.toPlainText() == "draft\n\nalpha"

    on_screen(work, *turns("one"))


def test_what_was_changed_is_kept_when_a_conversation_of_another_program_is_read(on_screen, home):
    async def work(screen):
        await screen.say("a")
        first = screen.conversation.id
        await edit(screen)
        screen.write("lpha")
        await in_place(screen)
        assert bar(screen) is None
        assert not composer(screen).isVisible()
        await show(screen, first)
        assert composer(screen).isVisible()
        assert screen.editor.toPlainText() == "alpha"

    on_screen(work, *turns("one"))


def compose(screen, text, committed=""):
    """Act as an input method: `text` is still being composed."""
    event = QInputMethodEvent(text, [])
    event.setCommitString(committed)
    QApplication.sendEvent(screen.editor, event)


def test_a_word_of_an_input_method_is_composed_in_the_place_of_the_message(on_screen):
    async def work(screen):
        await screen.say("a")
        await edit(screen)
        compose(screen, "ほん")
        await screen.idle()
        # What is composed is not there yet, wherever one looks meanwhile.
        view(screen).verticalScrollBar().setValue(0)
        assert place(screen).isVisible()
        assert screen.editor.toPlainText() == "a"
        compose(screen, "", "本")
        assert screen.editor.toPlainText() == "a本"
        compose(screen, "ご")
        screen.press("Cancel editing")
        assert screen.editor.toPlainText() == ""
        assert prompts(screen) == ["a"]
        await edit(screen)
        compose(screen, "ほん")
        compose(screen, "", "本")
        screen.expected = 2
        await send(screen)
        assert prompts(screen) == ["a本"]

    on_screen(work, *turns("one", "two"))


def test_what_was_changed_is_not_lost_when_another_prompt_or_the_same_is_edited(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        screen.write("draft")
        await edit(screen)
        screen.write("lpha")
        await edit(screen)
        await screen.idle()
        assert screen.editor.toPlainText() == "alpha"
        commands(screen, 2)["Edit"].run()
        await until(lambda: screen.editor.toPlainText() == "b")
        screen.press("Cancel editing")
        assert screen.editor.toPlainText() == "draft\n\nalpha"

    on_screen(work, *turns("one", "two"))


def test_what_cannot_be_sent_goes_on_being_edited(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("a")
        screen.write("draft")
        await edit(screen)
        monkeypatch.setattr(type(screen.conversation.branches), "edit_prompt", refuse)
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        await until(lambda: bar(screen) and screen.editor.toPlainText() == "a")
        assert composer(screen).draft()[0] == "draft"
        assert any("Not now." in words for words in screen.words())

    def refuse(*_arguments):
        raise StorageFailed("Not now.")

    on_screen(work, *turns("one"))


def test_a_prompt_that_is_in_view_no_more_is_edited_no_more(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        await edit(screen, 2)
        screen.write("eta")
        await run(screen, "Branch from here", 1)
        assert bar(screen) is None
        assert screen.editor.toPlainText() == "beta"

    on_screen(work, *turns("one", "two"))


def test_the_editor_is_in_the_place_of_the_message_and_grows_there(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        home = editor_box(screen)
        await edit(screen)
        await until(lambda: is_over(screen, 0))
        assert editor_box(screen).top() < home.top()
        height, below = editor_box(screen).height(), row_box(screen, 1).top()
        screen.editor.insertPlainText("\nb\nc\nd")
        await until(lambda: editor_box(screen).height() > height and is_over(screen, 0))
        assert row_box(screen, 1).top() - below == editor_box(screen).height() - height
        screen.press("Cancel editing")
        await until(lambda: editor_box(screen) == home)
        assert screen.editor.hasFocus()

    on_screen(work, *turns("one", "two"))


def test_the_editor_scrolls_with_its_message_and_comes_back_when_one_writes(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        await edit(screen)
        await until(lambda: is_over(screen, 0))
        top = editor_box(screen).top()
        wheel(screen.editor, -120)
        assert editor_box(screen).top() < top
        assert is_over(screen, 0)
        view(screen).scroller.scroll_to_end()
        assert is_over(screen, 0)
        screen.write("lpha")
        assert view(screen).rect().contains(place(screen).geometry().topLeft())

    on_screen(work, *turns("one", HIGH))


HIGH = "\n\n".join("two" for _ in range(90))


def is_in_view(screen, part, box=None):
    """Whether all of a widget, or of a box in it, is in the transcript's viewport."""
    viewport = view(screen).viewport()
    box = part.rect() if box is None else box
    return viewport.rect().contains(box.translated(viewport.mapFromGlobal(part.mapToGlobal(QPoint(0, 0)))))


def cursor_is_in_view(screen):
    return is_in_view(screen, screen.editor.viewport(), screen.editor.cursorRect())


def test_the_editor_stays_in_view_while_it_grows(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        await edit(screen, 2)
        await until(lambda: is_over(screen, 2))
        view(screen).scroller.scroll_by(place(screen).geometry().bottom() + 4 - view(screen).viewport().height())
        height = editor_box(screen).height()
        screen.editor.insertPlainText("\nb\nc\nd")
        await until(lambda: editor_box(screen).height() > height)
        await until(lambda: is_in_view(screen, composer(screen)))

    on_screen(work, *turns(HIGH, HIGH))


def test_what_has_the_keyboard_and_what_is_said_is_scrolled_to(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        await edit(screen)
        view(screen).scroller.scroll_to_end()
        QTest.keyClick(screen.editor, Qt.Key.Key_Tab)
        assert is_in_view(screen, QApplication.focusWidget())
        screen.editor.setFocus()
        view(screen).scroller.scroll_to_end()
        composer(screen).show_problem(Sentence("Not now."))
        await until(lambda: is_in_view(screen, composer(screen)))
        view(screen).scroller.scroll_to_end()
        await edit(screen)
        await until(lambda: is_in_view(screen, composer(screen)))

    on_screen(work, *turns(HIGH, HIGH))


def test_the_cursor_is_in_view_in_a_window_that_is_lower_than_the_editor(on_screen):
    async def work(screen):
        await screen.say("a")
        screen.window.resize(500, 330)
        await edit(screen)
        screen.editor.insertPlainText("\nb" * 12)
        await until(lambda: place(screen).height() > view(screen).viewport().height())
        screen.write("c")
        await until(lambda: cursor_is_in_view(screen))
        composer(screen).show_problem(Sentence("Not now. " * 20))
        await until(lambda: is_in_view(screen, composer(screen)._problems))
        for key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            for _ in range(12):
                QTest.keyClick(screen.editor, key)
            assert cursor_is_in_view(screen)

    on_screen(work, *turns(HIGH))


def test_the_menu_key_in_the_editor_does_not_open_the_menu_of_the_transcript(on_screen):
    async def work(screen):
        await screen.say("a")
        await edit(screen)
        button = composer(screen).attach_button
        middle = button.rect().center()
        event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, middle, button.mapToGlobal(middle))
        QApplication.sendEvent(button, event)
        assert QApplication.activePopupWidget() is None

    on_screen(work, *turns("one"))


def test_a_wheel_that_turns_sideways_over_the_editor_scrolls_nothing_elsewhere(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("a")
        await edit(screen)
        await until(lambda: is_over(screen, 0))
        points = []
        monkeypatch.setattr(view(screen)._wheel, "_scroll_horizontally", lambda point, _pixels: points.append(point))
        editor = screen.editor
        middle = editor.mapTo(editor.window(), editor.rect().center())
        QTest.wheelEvent(editor.window().windowHandle(), QPointF(middle), QPoint(120, 0))
        assert points == [view(screen).viewport().mapFrom(editor.window(), middle)]

    on_screen(work, *turns("one"))


def test_the_keyboard_comes_back_to_the_editor_of_a_window_that_is_not_active(on_screen):
    async def work(screen):
        await screen.say("a")
        await edit(screen)
        other = QWidget()
        other.show()
        other.activateWindow()
        await until(lambda: not screen.window.isActiveWindow())
        screen.window.page.editing.leave()
        assert screen.window.focusWidget() is screen.editor
        other.close()
        other.deleteLater()

    on_screen(work, *turns("one"))


def wheel(widget, delta):
    middle = widget.mapTo(widget.window(), widget.rect().center())
    QTest.wheelEvent(widget.window().windowHandle(), QPointF(middle), QPoint(0, delta))


def test_keys_that_the_editor_does_not_need_are_no_commands_of_the_transcript(on_screen):
    async def work(screen):
        await screen.say("a")
        await edit(screen)
        view(screen).row_viewport.focus((1, ""))
        button = composer(screen).attach_button
        button.setFocus()
        QTest.keyClick(button, Qt.Key.Key_Delete)
        QTest.keyClick(button, Qt.Key.Key_Tab)
        assert not button.hasFocus()
        assert composer(screen).isAncestorOf(QApplication.focusWidget())
        assert view(screen).row_viewport.focused == (1, "")
        await screen.idle()
        assert screen.question() is None
        assert prompts(screen) == ["a"]

    on_screen(work, *turns("one"))


def test_the_message_is_found_and_the_editor_is_among_what_assistive_technology_sees(on_screen):
    async def work(screen):
        await screen.say("alpha")
        await edit(screen)
        statuses = []
        view(screen).finder.status_changed.connect(statuses.append)
        view(screen).finder.search(Query("alpha"))
        await until(lambda: statuses and (statuses[-1].current, statuses[-1].total) == (1, 1))
        tree = QAccessible.queryAccessibleInterface(view(screen))
        children = [tree.child(index) for index in range(tree.childCount())]
        assert place(screen) in [child.object() for child in children]
        assert children[0].child(0).textInterface().text(0, 9) == "alpha"

    on_screen(work, *turns("one"))


async def asked_to_edit(screen, row):
    """Choose to edit a prompt whose pictures load only when the returned event is set."""
    is_called, may_go_on = held(screen.desk.library.drafts, "content_of")
    commands(screen, row)["Edit"].run()
    await is_called.wait()
    return may_go_on


def test_the_prompt_that_is_chosen_last_is_edited_although_the_one_before_takes_longer(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        load = screen.desk.library.drafts.content_of
        may_go_on = await asked_to_edit(screen, 0)
        screen.desk.library.drafts.content_of = load
        await edit(screen, 2)
        may_go_on.set()
        await screen.idle()
        assert screen.editor.toPlainText() == "b"

    on_screen(work, *turns("one", "two"))


def test_a_prompt_that_is_in_view_no_more_when_it_is_loaded_is_not_edited(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        may_go_on = await asked_to_edit(screen, 2)
        commands(screen, 1)["Branch from here"].run()
        await until(lambda: len(view(screen).row_viewport.rows) == 2)
        may_go_on.set()
        await settled(screen)
        assert bar(screen) is None

    on_screen(work, *turns("one", "two"))


def test_a_prompt_that_is_loaded_when_the_model_works_is_not_edited_and_it_is_said(on_screen):
    gate = asyncio.Event()

    async def work(screen):
        await screen.say("a")
        may_go_on = await asked_to_edit(screen, 0)
        screen.write("b")
        screen.press("Send")
        await until(lambda: screen.conversation.working)
        may_go_on.set()
        await until(lambda: "still working" in composer(screen)._problems.text())
        assert bar(screen) is None
        gate.set()
        await settled(screen)

    on_screen(work, *turns("one"), Turn(Wait(gate), ContentDelta("two")))


def test_attached_texts_come_back_beside_the_prompt(on_screen, tmp_path):
    async def work(screen):
        path = tmp_path / "notes.txt"
        path.write_text("to read\n" * 300)
        composer(screen).attach_files([path])
        await until(lambda: composer(screen).attachments.chips and not composer(screen).attachments.is_preparing)
        await screen.say("a")
        await edit(screen)
        assert screen.editor.toPlainText() == "a"
        assert [chip.accessibleName() for chip in composer(screen).attachments.chips] == ["Attached file: notes.txt"]
        screen.write("lpha")
        screen.expected = 2
        await send(screen)
        (prompt,) = prompts(screen)
        assert prompt.startswith("alpha")
        assert prompt.count("to read") == 300

    on_screen(work, *turns("one", "two"))
