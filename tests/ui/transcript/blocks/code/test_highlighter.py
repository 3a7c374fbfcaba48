"""Who asks for colours gets them once, in slices, also when somebody else asks for the same."""

import pytest
from PySide6.QtCore import QTimer

from desktop_agent.types.blocks import Text
from desktop_agent.types.messages import Message, Role
from tests.fakes.transcript_view import Standing
from tests.ui.transcript.blocks.code.lexed_words import words_by_line
from ui.style.theme import LIGHT
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.highlighter_protocol import HighlightSlice
from ui.transcript.style import RenderStyle

ENDLESS = '"' + "\\" * 2000
LONG = "def f():\n    return 1  # one\n" * 200


@pytest.fixture
def highlighter(render_context):
    return render_context.highlighter


def wait(qtbot, highlighter):
    qtbot.waitUntil(lambda: highlighter.is_idle)


def words_in(slices):
    words = []
    for step in slices:
        words[step.line :] = step.words
    return words


def test_everybody_who_asks_is_answered_and_nothing_is_coloured_twice(highlighter, qtbot):
    first, second, third, fourth = [], [], [], []
    highlighter.highlight(LONG, "python", first.append)
    highlighter.highlight(LONG, "python", second.append)
    qtbot.waitUntil(lambda: bool(first))
    highlighter.highlight(LONG, "python", third.append)
    wait(qtbot, highlighter)
    highlighter.highlight(LONG, "python", fourth.append)
    expected = words_by_line(LONG, "python")
    for slices in (first, second, third, fourth):
        assert words_in(slices) == expected
        assert slices[-1].is_last
    assert len(fourth) == 1
    assert highlighter.process.sent == 1


def test_who_asks_again_meanwhile_is_not_told_twice(highlighter, qtbot):
    slices = []
    for _ in range(3):
        highlighter.highlight("x = 1", "python", slices.append)
    wait(qtbot, highlighter)
    assert len(slices) == 1


def test_what_is_too_much_is_plain_at_once_the_next_time(highlighter, qtbot):
    first, second, third = [], [], []
    highlighter.highlight(ENDLESS, "scala", first.append)
    highlighter.highlight("x = 1", "python", third.append)
    wait(qtbot, highlighter)
    assert words_in(third)
    highlighter.highlight(ENDLESS, "scala", second.append)
    assert first == second == [HighlightSlice(0, [], is_last=True)]
    assert highlighter.process.sent == 2


def test_only_so_many_wait(highlighter, qtbot):
    slices = []
    for number in range(60):
        highlighter.highlight(f"x = {number}", "python", slices.append)
    wait(qtbot, highlighter)
    assert len(slices) == highlighter.process.sent == 40


def block_of(highlighter, text, language, counts):
    host = CodeCallbacks(
        lambda text: None,
        lambda: None,
        highlighter.highlight,
        on_arrived=lambda: counts.append(len(block._lines.words)),
        run_later=highlighter.run_later,
    )
    block = CodeBlock(text, language, host)
    block.layout(400, RenderStyle(LIGHT, 100))
    return block


def test_a_long_block_is_shown_with_its_first_slice_and_at_its_end(highlighter, qtbot):
    counts = []
    block = block_of(highlighter, LONG, "python", counts)
    wait(qtbot, highlighter)
    assert counts[0] == 60
    assert counts[-1] == 401
    assert block._lines.words == words_by_line(LONG, "python")
    assert highlighter.process.sent == 1


def test_a_block_that_is_forgotten_between_its_slices_gets_the_rest(highlighter, qtbot):
    counts = []
    block = block_of(highlighter, LONG, "python", counts)
    qtbot.waitUntil(lambda: bool(counts))
    block.forget()
    block.layout(400, RenderStyle(LIGHT, 100))
    wait(qtbot, highlighter)
    assert block._lines.words == words_by_line(LONG, "python")
    assert highlighter.process.sent == 1


def test_a_hostile_block_stays_plain_and_the_window_goes_on(qtbot):
    text = Text(text=f"```scala\n{ENDLESS}\n```\n\n```py\nx = 1\n```\n")
    harness = Standing(qtbot, [Message(role=Role.ASSISTANT, blocks=(text,))])
    highlighter, turns = harness.view._render_context.highlighter, []
    timer = QTimer(harness.view)
    timer.timeout.connect(lambda: turns.append(highlighter.process.is_busy))
    timer.start(5)
    qtbot.waitUntil(lambda: highlighter.is_idle and highlighter.process.sent == 2)
    timer.stop()
    assert sum(turns) > 20
    blocks = {block.language: block for block in harness.rows.row(0).blocks if isinstance(block, CodeBlock)}
    assert not any(blocks["scala"]._lines.words)
    assert blocks["py"]._lines.words == words_by_line("x = 1", "python")
    assert highlighter.process.worker.started == 2
