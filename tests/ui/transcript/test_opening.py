"""What is folded behind a notice and behind a specialist's call, and how it is opened."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from desktop_agent.conversation.items import CallState, NoticeItem, ToolCallItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import COMPACTED
from desktop_agent.types.blocks import Summary, Text, ToolResult
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.tool_calls import tool_title
from tests.fakes.transcript_feed import NoPictures
from tests.ui.transcript.copied import plain_of
from ui.style.theme import ThemeSource
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.rows.row_factory import make_row
from ui.transcript.view import TranscriptView

SUMMARY = "## Goals\n\nPaint the **shed**."


def notice(folded=SUMMARY):
    return NoticeItem("i", "notice", COMPACTED, folded=(folded,) if folded else ())


def press(row, name="Show details"):
    for index in range(len(row.blocks)):
        row.stack.settle_block(index)
    (control,) = [control for _, control in row.controls() if control.name == name]
    control.press()


def test_a_notice_opens_and_folds_again(render_context):
    row = make_row(notice(), render_context, 600)
    assert "shed" not in plain_of(row)
    changed = []
    render_context.signals.changed.connect(changed.append)
    press(row)
    assert "Goals" in plain_of(row)
    assert "Paint the shed." in plain_of(row)
    press(row)
    assert "shed" not in plain_of(row)
    assert changed == ["i", "i"]


def test_a_notice_with_nothing_behind_it_has_nothing_to_open(render_context):
    row = make_row(notice(""), render_context, 600)
    row.stack.settle(0, 10_000)
    assert not list(row.controls())


def test_what_is_behind_a_notice_is_not_read_out_before_it_is_opened(render_context):
    row = make_row(notice(), render_context, 600)
    assert "shed" not in row.spoken_text()
    press(row)
    assert "shed" in row.spoken_text()


def read_step(path):
    return Sentence("{tool} · {arguments}", {"tool": tool_title("read_file"), "arguments": f"path: {path}"})


def delegated(*, ended):
    item = ToolCallItem("c", "m", "1", "researcher", {"task": "look"}, delegated=True, state=CallState.RUNNING)
    item.steps = [read_step("a.txt")]
    if ended:
        item.state = CallState.ENDED
        item.result = ToolResult(tool_use_id="1", content=(Text(text="Found it."),))
    return item


def test_a_specialists_call_shows_its_steps_while_it_works_and_beside_its_answer(render_context):
    row = make_row(delegated(ended=False), render_context, 600)
    assert "Read a file · path: a.txt" in plain_of(row)
    press(row)
    assert [(block._title, block.text) for block in row.blocks if isinstance(block, CodeBlock)][1:] == [
        ("steps", "Read a file · path: a.txt"),
    ]
    press(row)
    row = make_row(delegated(ended=True), render_context, 600)
    assert "Read a file" not in plain_of(row)
    press(row)
    assert [block.text for block in row.blocks if isinstance(block, CodeBlock)][1:] == [
        "Read a file · path: a.txt",
        "Found it.",
    ]


def test_steps_arrive_one_by_one_and_each_is_one_short_line(render_context):
    item = delegated(ended=False)
    row = make_row(item, render_context, 600)
    for unfolds in (False, True):
        if unfolds:
            press(row)
        block = row.blocks[-1]
        item.steps.append(Sentence("It said: {words}", {"words": "two\nlines \u202e" + "x" * 900}))
        row.refresh("text")
        assert row.blocks[-1] is block
        lines = block.plain().split("\n")
        assert len(lines) == len(item.steps)
        assert lines[-1] == "It said: two lines ⟨U+202E⟩".ljust(159, "x") + "…"


def test_a_folded_call_shows_its_newest_steps(render_context):
    item = delegated(ended=False)
    item.steps += [read_step(f"{number}.txt") for number in range(30)]
    row = make_row(item, render_context, 600)
    assert row.blocks[-1].plain().split("\n") == [f"Read a file · path: {number}.txt" for number in range(18, 30)]


@pytest.fixture
def view(qtbot):
    transcript = Transcript([Message(role=Role.SYSTEM, blocks=(Summary(text=SUMMARY, first_kept_id="x"),))])
    view = TranscriptView(ThemeSource(), NoPictures(Path()))
    qtbot.addWidget(view, before_close_func=lambda view: view.close_workers())
    view.resize(800, 600)
    view.set_transcript(transcript)
    with qtbot.waitExposed(view):
        view.show()
    view.viewport().grab()
    return view


def text_of(view):
    return plain_of(view.row_viewport.rows.row(0))


def test_the_mouse_opens_it(view):
    row = view.row_viewport.rows.row(0)
    ((block, control),) = row.controls()
    box = control.box.translated(row.stack.block_box(block).topLeft()).translated(
        view.row_viewport.row_box(0).topLeft()
    )
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=box.center())
    assert "shed" in text_of(view)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=box.center())
    assert "shed" not in text_of(view)


def test_the_keyboard_opens_it(view):
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(view, Qt.Key.Key_Tab)
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert "shed" in text_of(view)
    QTest.keyClick(view, Qt.Key.Key_Space)
    assert "shed" not in text_of(view)
