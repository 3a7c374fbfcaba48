"""The view as a person uses it: following, staying put, selecting, copying, pressing."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QCursor, QGuiApplication, QImage, QRegion
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QToolTip

from desktop_agent.conversation.items import AnswerItem, UserItem
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    AnswerAwaited,
    ApprovalRequested,
    ErrorOccurred,
    RetryScheduled,
    RunEnd,
    RunFinished,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import RemedyAction, Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import AnswerStarted, ContentDelta, Origin, ThinkingBlock, ThinkingDelta
from tests.fakes.transcript_view import Standing
from ui.style.theme import DARK, LIGHT
from ui.transcript.viewport.viewport import separate_parts

PARAGRAPHS = "\n\n".join(f"Paragraph {number}, with a few words in it." for number in range(40))


@pytest.fixture
def long(qtbot):
    harness = Standing(qtbot, [Message.user("Hello"), Message.assistant(PARAGRAPHS)])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("Next. "))
    return harness


def test_it_opens_at_the_end_and_follows(long):
    assert long.rows.following
    for _ in range(30):
        long.send(ContentDelta("More words to fill the lines. " * 5 + "\n\n"))
    assert long.rows.top == long.rows.bottom
    assert long.view.verticalScrollBar().value() == long.view.verticalScrollBar().maximum()
    assert not long.view.jump_button.isVisible()


def test_scrolled_up_it_stays_to_the_pixel_and_counts_what_is_new(long):
    long.view.scroller.scroll_by(-300)
    picture, value = long.picture(), long.rows.top
    for _ in range(10):
        long.send(ContentDelta("More words. " * 20 + "\n\n"))
    long.send(RunFinished(RunEnd.COMPLETED))
    long.view.apply(long.transcript.add_message(Message.user("And another question.")))
    assert long.picture() == picture
    assert long.rows.top == value
    assert long.view.jump_button.isVisible()
    assert long.view.jump_button.count == 1
    assert long.view.jump_button.accessibleName() == "Jump to latest"
    QTest.mouseClick(long.view.jump_button, Qt.MouseButton.LeftButton)
    assert long.rows.following
    assert not long.view.jump_button.isVisible()
    assert long.view.jump_button.count == 0


def test_with_nothing_left_below_there_is_no_jump_to_the_latest(qtbot):
    messages = [Message.user("Hello"), Message.assistant("Hi.")]
    harness = Standing(qtbot, [*messages, Message.user(PARAGRAPHS)])
    harness.view.scroller.scroll_to_start()
    assert harness.view.jump_button.isVisible()
    harness.view.apply(harness.transcript.cut_after(messages))
    assert harness.rows.bottom == 0
    assert harness.rows.following
    assert not harness.view.jump_button.isVisible()


def test_a_change_above_what_is_read_moves_nothing(qtbot):
    harness = Standing(qtbot, [Message.user("Hello")])
    harness.send(TurnStarted("t", "m", "model"), ToolUse(id="a", name="run", input={"x": 1}), ToolStarted("a", {}))
    harness.send(*(ContentDelta(piece) for piece in (PARAGRAPHS, "\n\n", PARAGRAPHS)))
    harness.view.scroller.scroll_by(-400)
    picture, height = harness.picture(), harness.rows.total
    result = ToolResult(tool_use_id="a", content=(Text(text="no\nno\nno"),), outcome=Outcome.FAILED)
    harness.send(ToolFinished("a", result))
    assert harness.rows.total != height
    assert harness.picture() == picture


def test_why_something_cannot_be_done_is_said_beside_the_message_not_beside_the_window(qtbot, monkeypatch):
    harness = Standing(qtbot, [Message.user("Hello"), Message.assistant("Hi.")])
    points = []
    monkeypatch.setattr(QToolTip, "showText", lambda point, *_: points.append(harness.view.mapFromGlobal(point)))
    inside, outside = harness.view.mapToGlobal(QPoint(9, 9)), harness.view.mapToGlobal(QPoint(-90, 9))
    for pointer in (inside, outside):
        monkeypatch.setattr(QCursor, "pos", lambda pointer=pointer: pointer)
        harness.view.show_refusal("This is the newest version.")
    assert points[0] == QPoint(9, 9)
    assert harness.view.rect().contains(points[1])


def on_screen(qtbot, view) -> QImage:
    """Return the pixels that the window system was given: grab() would repaint everything and hide a wrong blit."""
    qtbot.wait(1)
    return view.screen().grabWindow(view.winId()).toImage()


def coloured(view) -> bool:
    """Whether no colours of code are still to come."""
    return view._render_context.highlighter.is_idle


def painted_anew(qtbot, view) -> QImage:
    view.viewport().update()
    return on_screen(qtbot, view)


def test_blitting_shows_the_same_as_painting_everything(long, qtbot):
    for pixels in (-37, -150, -90, 61, 400, -511):
        long.view.scroller.scroll_by(pixels)
        blitted = on_screen(qtbot, long.view)
        assert blitted == painted_anew(qtbot, long.view)
        assert blitted.pixelColor(10, 10).name() == LIGHT.window


def test_scrolling_a_little_paints_little_also_with_the_jump_button_over_the_rows(long, qtbot, monkeypatch):
    long.view.scroller.scroll_by(-37)
    assert long.view.jump_button.isVisible()
    on_screen(qtbot, long.view)
    painted = []
    monkeypatch.setattr(long.view.row_viewport, "paint", painted.append)
    for pixels in (-61, 50):
        long.view.scroller.scroll_by(pixels)
        qtbot.waitUntil(lambda: bool(painted))
        beside = long.view.viewport().height() - long.view.jump_button.y()
        assert sum(box.height() for box in painted.pop()) == abs(pixels) + beside


def test_two_lines_are_painted_without_what_is_between_them(long, qtbot):
    long.view.scroller.scroll_by(-37)
    picture = on_screen(qtbot, long.view)
    viewport = long.view.viewport()
    # What reaches from one into the other is not painted twice.
    for top in range(0, viewport.height(), 8):
        viewport.update(0, top, viewport.width(), 3)
    assert on_screen(qtbot, long.view) == picture


def test_the_parts_of_a_region_reach_over_their_edges_and_not_into_each_other():
    """At 125 % an edge can be between two pixels of the screen: there only the clip of Qt itself is exact."""
    region = QRegion(0, 10, 300, 3) + QRegion(0, 18, 300, 3) + QRegion(0, 25, 300, 3) + QRegion(40, 27, 10, 8)
    parts = separate_parts(region)
    assert [(part.top(), part.bottom()) for part in parts] == [(9, 13), (17, 21), (24, 35)]
    near = QRegion(0, 10, 300, 3) + QRegion(0, 15, 300, 3)
    assert [(part.top(), part.bottom()) for part in separate_parts(near)] == [(9, 18)]


def test_painting_only_what_changed_shows_the_same_as_painting_everything(long, qtbot):
    # Colours that come between two looks are no fault of painting.
    for timer in ("_quiet_timer", "_growing_timer", "_late"):
        getattr(long.view._render_context.highlighter, timer).setInterval(0)
    text = "".join(f"word{number} **bold** `code`\n" + "\n- item\n\n" * (number % 3) for number in range(8))
    text += "\n```py\n" + "line = 1\n" * 5 + "```\n\n| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 3 + "\nThe end."
    for start in range(0, len(text), 6):
        long.send(ContentDelta(text[start : start + 6]))
        qtbot.waitUntil(lambda: coloured(long.view))
        blitted = on_screen(qtbot, long.view)
        assert blitted == painted_anew(qtbot, long.view)


def test_scrolling_up_through_guessed_heights_moves_by_what_was_asked(qtbot):
    messages = [Message.assistant(f"# Row {n}\n\n" + PARAGRAPHS[: 90 * (n % 9)]) for n in range(200)]
    harness = Standing(qtbot, messages)
    for _ in range(30):
        rows = harness.rows
        index, _, _ = next(iter(rows.between(rows.top + 5, rows.top + rows.view)))
        top = harness.top_of(index)
        harness.view.scroller.scroll_by(-120)
        assert harness.top_of(index) == top + 120


def test_keys_scroll(long):
    view = long.view
    QTest.keyClick(view, Qt.Key.Key_Home)
    assert long.rows.top == 0
    assert not long.rows.following
    QTest.keyClick(view, Qt.Key.Key_PageDown)
    page = long.rows.top
    assert 0 < page < 600
    QTest.keyClick(view, Qt.Key.Key_Up)
    assert long.rows.top < page
    QTest.keyClick(view, Qt.Key.Key_PageUp)
    assert long.rows.top == 0
    QTest.keyClick(view, Qt.Key.Key_End)
    assert long.rows.following
    QTest.keyClick(view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    assert long.rows.top == 0
    QTest.keyClick(view, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert long.rows.following


def test_dragging_the_bar_to_its_end_follows_again(long):
    bar = long.view.verticalScrollBar()
    bar.setValue(100)
    assert not long.rows.following
    assert long.rows.top == bar.value()
    bar.setValue(bar.maximum())
    assert long.rows.following


def test_selection_across_messages_survives_deltas_and_is_copied_plain(qtbot):
    harness = Standing(
        qtbot, [Message.user("A question"), Message.assistant("One **two** three\n\n- item\n\n```\ncode\n```")]
    )
    harness.send(TurnStarted("t", "m", "model"), ThinkingDelta("secret thoughts"), ThinkingBlock("x", "p"))
    harness.send(ContentDelta("Four "))
    harness.drag(harness.position(0, 0, 2), harness.position(3, 0, 400))
    harness.send(ContentDelta("five"), RunFinished(RunEnd.COMPLETED))
    QTest.keyClick(harness.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    text = QGuiApplication.clipboard().text()
    assert text == "A question\n\nOne two three\n\n• item\n\ncode\n\nFour"
    QTest.keyClick(harness.view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(harness.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().endswith("Four five")
    assert "secret" not in QGuiApplication.clipboard().text()


def test_double_click_takes_the_word_and_a_third_click_the_paragraph(qtbot):
    harness = Standing(qtbot, [Message.assistant("First wordy 😀 paragraph.\n\nSecond.")])
    point = harness.position(0, 0, 45)
    QTest.mouseDClick(harness.view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    harness.view.copy()
    assert QGuiApplication.clipboard().text() == "wordy"
    QTest.mouseClick(harness.view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    harness.view.copy()
    assert QGuiApplication.clipboard().text() == "First wordy 😀 paragraph."


def test_reasoning_is_open_while_it_runs_and_folds_when_the_answer_begins(qtbot):
    harness = Standing(qtbot, [Message.user("Hello")])
    harness.send(TurnStarted("t", "m", "model"), ThinkingDelta("I **think**"))
    row = harness.rows.row(1)
    assert row.blocks[0].header.title == "Thinking…"
    assert len(row.blocks) == 2
    harness.view.apply(harness.feed(ContentDelta("Answer"), after=3.0))
    assert row.blocks[0].header.title == "Thought for 3 s"
    assert len(row.blocks) == 1
    harness.click(1, "Show thinking")
    assert len(harness.rows.row(1).blocks) == 2
    harness.send(ContentDelta(" goes on"), RunFinished(RunEnd.COMPLETED))
    assert len(harness.rows.row(1).blocks) == 2


def test_reasoning_somebody_reads_does_not_fold_under_their_eyes(qtbot):
    harness = Standing(qtbot, [Message.user("Hello")])
    harness.send(TurnStarted("t", "m", "model"), ThinkingDelta(PARAGRAPHS))
    harness.view.scroller.scroll_by(-200)
    picture = harness.picture()
    harness.send(ContentDelta("Answer"))
    assert harness.picture() == picture


def test_buttons_become_signals(qtbot):
    harness = Standing(qtbot, [Message.user("Hello")])
    harness.send(
        TurnStarted("t", "m", "model"),
        ToolUse(id="a", name="write_file", input={"path": "x"}),
        ApprovalRequested("approval-7", "a", "digest"),
        ErrorOccurred("k", "m", Sentence("It broke."), Sentence("Try again."), RemedyAction.RETRY, "the details"),
    )
    with qtbot.waitSignal(harness.view.approval_requested) as approval:
        harness.click(1, "Review")
    assert approval.args == ["approval-7"]
    with qtbot.waitSignal(harness.view.remedy_requested) as remedy:
        harness.click(2, "Retry")
    assert remedy.args == [harness.transcript[2].id, RemedyAction.RETRY]
    with qtbot.waitSignal(harness.view.details_copied):
        harness.click(2, "Copy details")
    assert QGuiApplication.clipboard().text() == "the details"


def test_what_failed_again_says_how_often_and_keeps_the_keyboard_on_its_button(qtbot):
    harness = Standing(qtbot, [Message.user("Hello")])
    error = ErrorOccurred("k", "m", Sentence("It broke."), Sentence("Try it."), RemedyAction.RETRY)
    harness.send(error)
    harness.view.focus_part(1, "2/Retry")
    for _ in range(2):
        harness.send(RetryScheduled(1.0, "It broke.", 1), error)
    assert harness.rows.row(1).spoken_text() == "It broke.\nFailed 3 times. Try it."
    with qtbot.waitSignal(harness.view.remedy_requested):
        QTest.keyClick(harness.view, Qt.Key.Key_Return)
    harness.send(AnswerStarted(Origin(provider="scripted")), ContentDelta("Hello."))
    assert [type(item) for item in harness.transcript] == [UserItem, AnswerItem]
    assert harness.view.row_viewport.focused == (-1, "")


def test_messages_are_walked_and_pressed_by_keyboard(qtbot):
    harness = Standing(qtbot, [Message.user("Hello"), Message.assistant("```py\nx = 1\n```")])
    view = harness.view
    control = Qt.KeyboardModifier.ControlModifier
    QTest.keyClick(view, Qt.Key.Key_Up, control)
    assert view.row_viewport.focused == (1, "")
    QTest.keyClick(view, Qt.Key.Key_Tab)
    assert view.row_viewport.focused == (1, "0/Copy code")
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert QGuiApplication.clipboard().text() == "x = 1"
    QTest.keyClick(view, Qt.Key.Key_Up, control)
    assert view.row_viewport.focused == (0, "")


def test_a_link_is_activated_by_a_click_and_never_a_foreign_scheme(qtbot):
    harness = Standing(qtbot, [Message.assistant("[here](https://x.org/a)\n\n[there](javascript:alert)")])
    with qtbot.waitSignal(harness.view.link_activated) as activated:
        QTest.mouseClick(harness.view.viewport(), Qt.MouseButton.LeftButton, pos=harness.position(0, 0, 8))
    assert activated.args == ["https://x.org/a"]
    with qtbot.assertNotEmitted(harness.view.link_activated):
        QTest.mouseClick(harness.view.viewport(), Qt.MouseButton.LeftButton, pos=harness.position(0, 1, 8))


def test_the_context_menu_copies_markdown_of_the_message_under_the_pointer(qtbot, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    harness = Standing(qtbot, [Message.user("Hi"), Message.assistant("Some **bold** words")])
    from PySide6.QtGui import QContextMenuEvent

    point = harness.position(1, 0)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, harness.view.mapToGlobal(point))
    harness.view.contextMenuEvent(event)
    menu = harness.view.findChild(QMenu)
    actions = {action.text().replace("&", ""): action for action in menu.actions()}
    assert not actions["Copy"].isEnabled()
    actions["Copy message as Markdown"].trigger()
    assert QGuiApplication.clipboard().text() == "Some **bold** words"
    actions["Copy message"].trigger()
    assert QGuiApplication.clipboard().text() == "Some bold words"
    actions["Select all"].trigger()
    assert not harness.view.row_viewport.selection.is_empty
    menu.close()


def test_another_theme_is_painted_and_the_place_kept(long):
    long.view.scroller.scroll_by(-300)
    index, _, _ = next(iter(long.rows.between(long.rows.top, long.rows.top + 10)))
    block_before = long.rows._anchor
    long.themes.use(DARK, 100)
    assert long.rows._anchor == block_before
    assert index == long.rows._anchor.row
    assert long.picture().pixelColor(2, 2).name() == DARK.window
    long.themes.use(LIGHT, 150)
    assert long.rows.render_context.style.body.pointSizeF() > 15


def test_another_width_keeps_the_block_that_is_read(long):
    long.view.scroller.scroll_by(-350)
    anchor = long.rows._anchor
    long.view.resize(420, 500)
    assert (long.rows._anchor.row, long.rows._anchor.block) == (anchor.row, anchor.block)


def test_removed_rows_are_gone_and_the_rest_stays(qtbot):
    harness = Standing(qtbot, [Message.user("Hello")])
    from desktop_agent.types.provider_events import ToolArgsDelta

    harness.send(TurnStarted("t", "m", "model"), ToolArgsDelta("a", "run", '{"x'))
    assert len(harness.rows) == 2
    harness.send(RunFinished(RunEnd.CANCELLED))
    assert len(harness.rows) == 1
    assert harness.rows.total == harness.rows.row(0).stack.height + 2 * harness.rows.margin


def test_only_what_is_near_is_laid_out_even_inside_one_message(qtbot):
    text = "\n\n".join(f"Paragraph {number} of a very long message." for number in range(3000))
    harness = Standing(qtbot, [Message.assistant(text)])
    row = harness.rows.row(0)
    for _ in range(20):
        harness.view.scroller.scroll_by(-900)
    assert len(row.blocks) < 3000
    assert sum(block.is_laid_out for block in row.blocks) < 200


def test_rows_that_nobody_has_seen_are_not_made(qtbot):
    harness = Standing(qtbot, [Message.user(f"Message {number}") for number in range(5000)])
    assert len(harness.rows._rows) < 30


def test_an_empty_transcript_says_so(qtbot):
    harness = Standing(qtbot)
    assert len({harness.picture().pixel(x, 270 + y) for x in range(250, 550, 3) for y in range(40)}) > 5


def test_a_streamed_message_looks_like_the_same_message_opened_later(qtbot):
    from tests.bench.transcript.texts import text_of

    text = text_of(1500)
    streamed = Standing(qtbot, [Message.user("Go")])
    streamed.send(TurnStarted("t", "m", "model"))
    for start in range(0, len(text), 7):
        streamed.send(ContentDelta(text[start : start + 7]))
    streamed.send(RunFinished(RunEnd.COMPLETED))
    opened = Standing(qtbot, [Message.user("Go"), Message.assistant(text)])
    for harness in (streamed, opened):
        harness.view.scroller.scroll_to_start()
        harness.view.scroller.scroll_to_end()
    qtbot.wait(100)
    qtbot.waitUntil(lambda: coloured(streamed.view) and coloured(opened.view))
    assert streamed.rows.total == opened.rows.total
    assert streamed.picture() == opened.picture()


def test_while_nothing_has_come_one_line_counts_on_and_then_is_gone(qtbot):
    harness = Standing(qtbot, [Message.user("Hello")])
    harness.send(TurnStarted("t", "m", "model"), AnswerAwaited(10.0))
    assert [block.plain() for block in harness.rows.row(1).blocks] == ["No answer yet, 10 s."]
    harness.send(AnswerAwaited(40.0))
    assert [block.plain() for block in harness.rows.row(1).blocks] == ["No answer yet, 40 s."]
    harness.send(ContentDelta("Here it is."))
    assert len(harness.rows) == 2
    assert [block.plain() for block in harness.rows.row(1).blocks] == ["Here it is."]


def test_the_transcript_is_the_same_in_a_window_from_the_right(qtbot, qapp, request):
    request.addfinalizer(lambda: qapp.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto))
    pictures = []
    for direction in (Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft):
        qapp.setLayoutDirection(direction)
        harness = Standing(qtbot, [Message.user("Hello?"), Message.assistant("1. First\n2. Second")])
        pictures.append(harness.view.viewport().grab().toImage())
    assert pictures[0] == pictures[1]
