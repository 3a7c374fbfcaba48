"""The clipboard, links, footnotes and menus of the view."""

import pytest
from PIL import Image as Pillow
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QContextMenuEvent, QGuiApplication, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QToolTip

from desktop_agent.types.blocks import Image, StoredSource, Text
from desktop_agent.types.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta, ThinkingBlock, ThinkingDelta
from tests.fakes.transcript_view import LEFT, Standing
from tests.ui.transcript.clipboard.safe_html import SafeReader
from tests.ui.transcript.copied import html_of, markdown_of, plain_of
from ui.shell.pictures.picture_canvas import MAX_SHOWN_PIXELS
from ui.transcript import clipboard
from ui.transcript.input import context_menu

CONTROL = Qt.KeyboardModifier.ControlModifier


def clipboard_formats():
    data = QGuiApplication.clipboard().mimeData()
    return data.text(), bytes(data.data("text/markdown").data()).decode(), data.html()


def press(view, key):
    QTest.keyClick(view, key, CONTROL)


@pytest.fixture
def harness(qtbot):
    harness = Standing(qtbot, [Message.user("Make a *list*"), Message.assistant("Here:\n\n- **one**\n- two")])
    harness.send(TurnStarted("t", "m", "model"), ThinkingDelta("secret"), ThinkingBlock("x", "p"))
    harness.send(ContentDelta("```py\nx\n```\n\n| a |\n|---|\n| =1 |"), RunFinished(RunEnd.COMPLETED))
    return harness


def test_all_of_a_conversation_is_copied_in_three_forms(harness, qtbot):
    press(harness.view, Qt.Key.Key_A)
    press(harness.view, Qt.Key.Key_C)
    plain, markdown, html = clipboard_formats()
    assert plain == "Make a *list*\n\nHere:\n\n• one\n• two\n\nx\n\na\n=1"
    assert markdown == ("Make a *list*\n\nHere:\n\n- **one**\n- two\n\n```py\nx\n```\n\n| a |\n| --- |\n| =1 |")
    reader = SafeReader()
    reader.feed(html)
    assert not reader.open
    assert "<li><strong>one</strong></li><li>two</li></ul>" in html
    assert "secret" not in plain + markdown + html


def test_rows_that_nobody_has_seen_are_copied_in_slices_and_the_screen_says_so(qtbot, monkeypatch):
    # A slice for each step: how many there are depends on no clock.
    monkeypatch.setattr(clipboard, "_SLICE_SECONDS", 0.0)
    messages = [m for n in range(200) for m in (Message.user(f"Ask {n}"), Message.assistant(f"- **Answer** {n}"))]
    harness = Standing(qtbot, messages)
    note = harness.view._copy_note
    note._wait.setInterval(0)
    QGuiApplication.clipboard().setText("before")
    progress = []
    harness.view._copier.progress.connect(lambda words: progress.append((words, note.isVisible())))
    press(harness.view, Qt.Key.Key_A)
    press(harness.view, Qt.Key.Key_C)
    assert QGuiApplication.clipboard().text() == "before"
    qtbot.waitUntil(lambda: QGuiApplication.clipboard().text() != "before")
    plain, markdown, _ = clipboard_formats()
    assert plain.startswith("Ask 0\n\n• Answer 0\n\nAsk 1")
    assert markdown.endswith("Ask 199\n\n- **Answer** 199")
    *slices, end = progress
    assert all(words.startswith("Copying…") for words, _ in slices)
    assert any(is_visible for _, is_visible in slices)
    assert end == ("", False)
    # Those near the viewport stay, and no others.
    assert len(harness.rows._rows) < 100


def test_what_is_copied_is_what_stood_there_when_it_was_asked_for(qtbot, monkeypatch):
    monkeypatch.setattr(clipboard, "_SLICE_SECONDS", 0.0)
    harness = Standing(qtbot, [Message.user(f"Ask {n}") for n in range(60)])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("One"))
    press(harness.view, Qt.Key.Key_A)
    QGuiApplication.clipboard().setText("before")
    harness.view.copy()
    harness.view.row_viewport.selection.clear()
    harness.send(ContentDelta(" two"), RunFinished(RunEnd.COMPLETED))
    qtbot.waitUntil(lambda: QGuiApplication.clipboard().text() != "before")
    assert QGuiApplication.clipboard().text().startswith("Ask 0\n\nAsk 1")


def test_a_later_copy_replaces_one_that_is_not_complete(qtbot, monkeypatch):
    monkeypatch.setattr(clipboard, "_SLICE_SECONDS", 0.0)
    harness = Standing(qtbot, [Message.user(f"Ask {n}") for n in range(100)])
    press(harness.view, Qt.Key.Key_A)
    harness.view.copy()
    harness.view._copier.copy("code")
    qtbot.wait(50)
    assert QGuiApplication.clipboard().text() == "code"
    assert not harness.view._copy_note.isVisible()


NOTES = (
    "Start[^1] here[^long].\n\n" + "".join(f"Paragraph {n}.\n\n" for n in range(60)) + "Again[^1].\n\n"
    "[^1]: The first note\n\n    goes on\n\n[^long]: Second note.\n\n" + "".join(f"After {n}.\n\n" for n in range(40))
)


@pytest.mark.parametrize("times", [1, 12])
def test_a_footnote_and_the_way_back(qtbot, times):
    # Twelve of these are longer than what is read at once.
    filler = "".join(f"More words to make it long, number {n}.\n\n" for n in range(60 * (times - 1)))
    harness = Standing(qtbot, [Message.assistant(filler + NOTES)])
    view, viewport = harness.view, harness.view.viewport()
    row = harness.rows.row(0)
    while row.stack.last_lazy_section() is not None:
        row.stack.read(row.stack.last_lazy_section())
    view.scroller.show_rows()
    last_reference = harness.block(0, "Again")
    view.scroller.scroll_by(row.stack.block_top(last_reference) - harness.rows.top - 30)
    with qtbot.assertNotEmitted(view.link_activated):
        QTest.mouseClick(viewport, LEFT, pos=harness.point(0, "Again", 6))
        note = harness.point(0, "The first note", 3)
        assert viewport.rect().contains(note)
        assert not viewport.rect().contains(harness.point(0, "Start", 6)) or times > 1
        harness.view.row_viewport.selection.clear()
        row.stack.settle_block(harness.block(0, "The first note"))
        last = row.blocks[harness.block(0, "The first note")]
        assert not last.link_at(last.caret_rect_at(len("The first note")).center().toPoint() + QPoint(8, 0))
        back_link = harness.point(0, "goes on", len("goes on")) + QPoint(8, 0)
        QTest.mouseClick(viewport, LEFT, pos=back_link)
    assert viewport.rect().contains(harness.point(0, "Again", 6))
    assert "↩" not in plain_of(row) + markdown_of(row) + html_of(row)


def test_a_reference_leads_to_a_note_that_was_not_read_yet_and_back_to_the_first(qtbot):
    text = "Start[^1].\n\n" + "".join(f"More words to make it long, number {n}.\n\n" for n in range(900))
    harness = Standing(qtbot, [Message.assistant(text + "[^1]: Far away\n\n" + text.partition("More")[2] * 2)])
    harness.view.scroller.stop()
    harness.view.scroller.scroll_to_start()
    links, viewport = harness.view._links, harness.view.viewport()
    links.follow("#fn:1", 0)
    assert viewport.rect().contains(harness.point(0, "Far away", 2))
    links.follow("#back:1", 0)
    assert viewport.rect().contains(harness.point(0, "Start", 5))


def test_only_the_web_and_mail_are_opened(harness, qtbot):
    for target in ("javascript:alert(1)", "file:///etc/passwd", "#fn:none", "#back:none", "", "ftp://x.org"):
        with qtbot.assertNotEmitted(harness.view.link_activated):
            harness.view._links.follow(target, 0)
    for target in ("https://x.org", "mailto:a@b.org"):
        with qtbot.waitSignal(harness.view.link_activated) as opened:
            harness.view._links.follow(target, 0)
        assert opened.args == [target]


def test_tips_say_where_links_lead_and_what_notes_say(qtbot):
    text = "[here](https://x.org/a) and[^1] $x^2$.\n\n| [t](https://y.org) |\n|---|\n\n[^1]: A *note*."
    harness = Standing(qtbot, [Message.assistant(text)])
    tip = harness.view._links.tooltip_at
    assert tip(harness.point(0, "here", 1) + QPoint(2, 0)) == "https://x.org/a"
    assert tip(harness.point(0, "here", 9) + QPoint(2, 0)) == "A note."
    assert tip(harness.point(0, "t", 0) + QPoint(2, 0)) == "https://y.org"
    assert tip(harness.point(0, "A note", 7) + QPoint(8, 0)) == "Back to the text"
    assert tip(harness.point(0, "here", 5) + QPoint(2, 0)) == ""
    assert tip(QPoint(5, 590)) == ""
    assert not QToolTip.isVisible()


@pytest.fixture
def menus(qt_messages):
    # Offscreen there is no keyboard to grab.
    qt_messages.expect("grabbing the keyboard")


def test_the_menu_of_a_link(qtbot, menus):
    harness = Standing(qtbot, [Message.assistant("[x & y](https://x.org/?a=1&b=2) and more")])
    menu, actions = harness.menu(harness.point(0, "x", 2))
    assert menu.accessibleName() == "Menu: Link to https://x.org/?a=1&b=2"
    assert menu.actions()[0].text() == "Link to https://x.org/?a=1&&b=2"
    actions["Copy link"].trigger()
    assert QGuiApplication.clipboard().text() == "https://x.org/?a=1&b=2"
    with qtbot.waitSignal(harness.view.link_activated) as opened:
        actions["Open link"].trigger()
    assert opened.args == ["https://x.org/?a=1&b=2"]
    menu.close()


def test_the_menu_of_a_message(harness, menus):
    menu, actions = harness.menu(harness.point(1, "one", 1))
    assert menu.accessibleName() == "Menu: Assistant said"
    assert not actions["Copy"].isEnabled()
    assert actions["Copy"].shortcut() == QKeySequence(QKeySequence.StandardKey.Copy)
    actions["Copy message as Markdown"].trigger()
    assert clipboard_formats()[:2] == ("Here:\n\n- **one**\n- two",) * 2
    actions["Copy message"].trigger()
    assert clipboard_formats()[0] == "Here:\n\n• one\n• two"
    assert "<li><strong>one</strong></li>" in clipboard_formats()[2]
    actions["Copy conversation as Markdown"].trigger()
    assert clipboard_formats()[0].startswith("## You said\n\nMake a *list*\n\n## Assistant said\n\nHere:")
    assert "secret" not in clipboard_formats()[0]
    actions["Select all"].trigger()
    menu.close()
    harness.select(1, "one")
    menu, actions = harness.menu(harness.point(1, "one", 1))
    actions["Copy as Markdown"].trigger()
    assert clipboard_formats()[0] == "- **one**"
    actions["Copy"].trigger()
    assert clipboard_formats()[:2] == ("• one", "- **one**")
    menu.close()


def test_the_menus_of_code_and_tables(harness, menus):
    menu, actions = harness.menu(harness.point(3, "x", 0))
    assert menu.accessibleName() == "Menu: Code: py"
    assert "Save as…" in actions
    actions["Copy code"].trigger()
    assert QGuiApplication.clipboard().text() == "x"
    menu.close()
    menu, actions = harness.menu(harness.point(3, "a", 0))
    assert menu.accessibleName() == "Menu: Table"
    actions["Copy table as Markdown"].trigger()
    assert clipboard_formats()[:2] == ("| a |\n| --- |\n| =1 |",) * 2
    actions["Copy table as CSV"].trigger()
    assert QGuiApplication.clipboard().text() == "a\r\n'=1\r\n"
    menu.close()


def test_the_menu_of_an_image_copies_it_as_large_as_it_is(qtbot, tmp_path, menus):
    digest = "d1" * 32
    Pillow.new("RGB", (900, 700), "red").save(tmp_path / digest, "PNG")
    source = StoredSource(digest=digest, media_type="image/png", size=1, width=900, height=700)
    message = Message.user_with_blocks((Text(text="Look"), Image(source=source, name="red.png")))
    harness = Standing(qtbot, [message], tmp_path)
    row = harness.rows.row(0)
    corner = row.stack.block_box(0).topLeft() + harness.view.row_viewport.row_box(0).topLeft()
    menu, actions = harness.menu(corner + QPoint(20, 20))
    assert menu.accessibleName() == "Menu: Picture"
    actions["Copy picture"].trigger()
    qtbot.waitUntil(lambda: not QGuiApplication.clipboard().image().isNull())
    assert QGuiApplication.clipboard().image().size().toTuple() == (900, 700)
    with qtbot.waitSignal(harness.view.image_opened):
        actions["Open picture"].trigger()
    menu.close()


class Picture:
    """A message with a picture, and its menu."""

    def __init__(self, qtbot, folder, size=(900, 700)):
        self.digest = "d1" * 32
        Pillow.new("RGB", size, "red").save(folder / self.digest, "PNG")
        source = StoredSource(digest=self.digest, media_type="image/png", size=1, width=size[0], height=size[1])
        message = Message.user_with_blocks((Text(text="Look"), Image(source=source, name="red.png")))
        self.harness = Standing(qtbot, [message, Message.assistant("```py\nx\n```")], folder)
        self.view = self.harness.view
        self.view._copy_note._wait.setInterval(0)
        qtbot.waitUntil(lambda: not self.view._job_queue.is_busy)
        QGuiApplication.clipboard().setText("before")

    def copy(self):
        row = self.harness.rows.row(0)
        corner = row.stack.block_box(0).topLeft() + self.view.row_viewport.row_box(0).topLeft()
        menu, actions = self.harness.menu(corner + QPoint(20, 20))
        actions["Copy picture"].trigger()
        menu.close()

    def copy_text(self, how):
        if how == "message":
            self.view.context_menu.copy_all()
        elif how == "selection":
            press(self.view, Qt.Key.Key_A)
            press(self.view, Qt.Key.Key_C)
        else:
            self.harness.rows.row(1).blocks[0].controls()[0].press()


@pytest.mark.parametrize("how", ["message", "selection", "code"])
def test_an_image_that_comes_late_does_not_replace_what_was_copied_after_it(qtbot, tmp_path, menus, how):
    picture = Picture(qtbot, tmp_path)
    picture.copy()
    picture.copy_text(how)
    text = QGuiApplication.clipboard().text()
    qtbot.waitUntil(lambda: not picture.view._job_queue.is_busy)
    qtbot.wait(20)
    assert QGuiApplication.clipboard().image().isNull()
    assert QGuiApplication.clipboard().text() == text != "before"


def test_of_two_images_the_last_one_is_copied(qtbot, tmp_path, menus):
    picture = Picture(qtbot, tmp_path)
    picture.copy()
    picture.copy()
    qtbot.waitUntil(lambda: not QGuiApplication.clipboard().image().isNull())


def test_a_copied_image_is_bounded_as_where_it_is_looked_at_and_kept_nowhere(qtbot, tmp_path, menus, monkeypatch):
    assert context_menu._MAX_COPIED_PIXELS == MAX_SHOWN_PIXELS
    monkeypatch.setattr(context_menu, "_MAX_COPIED_PIXELS", 10_000)
    picture = Picture(qtbot, tmp_path)
    picture.copy()
    qtbot.waitUntil(lambda: not QGuiApplication.clipboard().image().isNull())
    size = QGuiApplication.clipboard().image().size()
    assert size.width() * size.height() <= 10_100
    assert all(wide < 900 for _, wide, _ in picture.view._render_context.thumbnails._cache)


def test_an_image_that_cannot_be_read_is_said_to_be_so(qtbot, tmp_path, menus, monkeypatch):
    monkeypatch.setattr(context_menu, "_FAILURE_MS", 50)
    picture = Picture(qtbot, tmp_path)
    (tmp_path / picture.digest).write_bytes(b"nonsense")
    picture.copy()
    qtbot.waitUntil(picture.view._copy_note.isVisible)
    assert picture.view._copy_note.accessibleName().startswith("This picture was not copied")
    qtbot.waitUntil(lambda: not picture.view._copy_note.isVisible())
    assert QGuiApplication.clipboard().text() == "before"
    monkeypatch.setattr(context_menu, "_FAILURE_MS", 50_000)
    picture.copy()
    qtbot.waitUntil(picture.view._copy_note.isVisible)
    picture.copy_text("code")
    assert not picture.view._copy_note.isVisible()


def test_the_key_for_menus_asks_about_what_has_the_keyboard(harness, menus):
    harness.view.apply(harness.transcript.add_message(Message.assistant("Words\n\n> - more\n\n```js\nx\n```")))
    harness.view.scroller.scroll_to_end()
    press(harness.view, Qt.Key.Key_Up)
    press(harness.view, Qt.Key.Key_Up)
    keyboard = QContextMenuEvent.Reason.Keyboard
    menu, actions = harness.menu(QPoint(), keyboard)
    menu.close()
    assert "Copy message" in actions
    QTest.keyClick(harness.view, Qt.Key.Key_Tab)
    menu, actions = harness.menu(QPoint(), keyboard)
    assert menu.accessibleName() == "Menu: Code: py"
    menu.close()
    code = next(index for index, control in harness.rows.row(4).controls())
    harness.view.row_viewport.focus((4, f"{code}/Copy code"))
    menu, actions = harness.menu(QPoint(), keyboard)
    assert menu.accessibleName() == "Menu: Code: js"
    menu.close()
    harness.view.row_viewport.focus((-1, ""))
    harness.select(1, "two")
    menu, actions = harness.menu(QPoint(), keyboard)
    assert actions["Copy"].isEnabled()
    menu.close()


def test_every_entry_has_a_mnemonic_of_its_own(harness, menus):
    harness.select(1, "one")
    for point in (harness.point(3, "a", 0), harness.point(3, "x", 0), harness.point(1, "one", 0)):
        menu, _ = harness.menu(point)
        actions: list[QAction] = [action for action in menu.actions() if action.isEnabled() and "&" in action.text()]
        signs = [item.text()[item.text().index("&") + 1].lower() for item in actions]
        assert len(signs) == len(set(signs)) >= 6
        menu.close()


def test_an_empty_conversation_has_a_menu_too(qtbot, menus):
    harness = Standing(qtbot)
    menu, actions = harness.menu(QPoint(100, 100))
    assert not actions["Select all"].isEnabled()
    assert isinstance(menu, QMenu)
    menu.close()
