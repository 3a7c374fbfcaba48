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


def words_in(heard):
    words = []
    for each in heard:
        words[each.line :] = each.words
    return words


def test_everybody_who_asks_is_answered_and_nothing_is_coloured_twice(highlighter, qtbot):
    one, two, late, later = [], [], [], []
    highlighter.highlight(LONG, "python", one.append)
    highlighter.highlight(LONG, "python", two.append)
    qtbot.waitUntil(lambda: bool(one))
    highlighter.highlight(LONG, "python", late.append)
    wait(qtbot, highlighter)
    highlighter.highlight(LONG, "python", later.append)
    expected = words_by_line(LONG, "python")
    for heard in (one, two, late, later):
        assert words_in(heard) == expected
        assert heard[-1].is_last
    assert len(later) == 1
    assert highlighter.process.sent == 1


def test_who_asks_again_meanwhile_is_not_told_twice(highlighter, qtbot):
    heard = []
    for _ in range(3):
        highlighter.highlight("x = 1", "python", heard.append)
    wait(qtbot, highlighter)
    assert len(heard) == 1


def test_what_is_too_much_is_plain_at_once_the_next_time(highlighter, qtbot):
    heard, again, other = [], [], []
    highlighter.highlight(ENDLESS, "scala", heard.append)
    highlighter.highlight("x = 1", "python", other.append)
    wait(qtbot, highlighter)
    assert words_in(other)
    highlighter.highlight(ENDLESS, "scala", again.append)
    assert heard == again == [HighlightSlice(0, [], is_last=True)]
    assert highlighter.process.sent == 2


def test_only_so_many_wait(highlighter, qtbot):
    heard = []
    for number in range(60):
        highlighter.highlight(f"x = {number}", "python", heard.append)
    wait(qtbot, highlighter)
    assert len(heard) == highlighter.process.sent == 40


def block_of(highlighter, text, language, told):
    host = CodeCallbacks(
        lambda text: None,
        lambda: None,
        highlighter.highlight,
        on_arrived=lambda: told.append(len(block._lines.words)),
        run_later=highlighter.run_later,
    )
    block = CodeBlock(text, language, host)
    block.layout(400, RenderStyle(LIGHT, 100))
    return block


def test_a_long_block_is_shown_with_its_first_slice_and_at_its_end(highlighter, qtbot):
    told = []
    block = block_of(highlighter, LONG, "python", told)
    wait(qtbot, highlighter)
    assert told[0] == 60
    assert told[-1] == 401
    assert block._lines.words == words_by_line(LONG, "python")
    assert highlighter.process.sent == 1


def test_a_block_that_is_forgotten_between_its_slices_gets_the_rest(highlighter, qtbot):
    told = []
    block = block_of(highlighter, LONG, "python", told)
    qtbot.waitUntil(lambda: bool(told))
    block.forget()
    block.layout(400, RenderStyle(LIGHT, 100))
    wait(qtbot, highlighter)
    assert block._lines.words == words_by_line(LONG, "python")
    assert highlighter.process.sent == 1


def test_a_hostile_block_stays_plain_and_the_window_goes_on(qtbot):
    text = Text(text=f"```scala\n{ENDLESS}\n```\n\n```py\nx = 1\n```\n")
    stand = Standing(qtbot, [Message(role=Role.ASSISTANT, blocks=(text,))])
    highlighter, turns = stand.view._render_context.highlighter, []
    beat = QTimer(stand.view)
    beat.timeout.connect(lambda: turns.append(highlighter.process.is_busy))
    beat.start(5)
    qtbot.waitUntil(lambda: highlighter.is_idle and highlighter.process.sent == 2)
    beat.stop()
    assert sum(turns) > 20
    blocks = {each.language: each for each in stand.rows.row(0).blocks if isinstance(each, CodeBlock)}
    assert not any(blocks["scala"]._lines.words)
    assert blocks["py"]._lines.words == words_by_line("x = 1", "python")
    assert highlighter.process.worker.started == 2
