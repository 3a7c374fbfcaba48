"""A diagram in a conversation: source first, a picture when the person asks, always the source when it is copied."""

import threading
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Text
from desktop_agent.types.engine_events import TurnStarted
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_feed import Feed, NoPictures
from tests.ui.transcript.blocks.diagram_stand_in import make
from tests.ui.transcript.copied import plain_of
from ui.style.theme import DARK, ThemeSource
from ui.transcript.blocks.diagram_block import DiagramBlock, diagram_error_sentence
from ui.transcript.blocks.diagram_renderer import DiagramError, DiagramErrorReason, DiagramRenderer
from ui.transcript.view import TranscriptView


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return make(tmp_path_factory.mktemp("interpreter"))


class Stand:
    def __init__(self, qtbot, tmp_path, python):
        self.bot, self.themes = qtbot, ThemeSource()
        self.view = TranscriptView(self.themes, NoPictures(tmp_path))
        self.view._render_context.diagrams._renderer = DiagramRenderer(python)
        qtbot.addWidget(self.view, before_close_func=lambda each: each.close_workers())
        self.view.resize(800, 600)
        self.view.show()

    def notify(self, text):
        self.view.set_transcript(Transcript([Message(role=Role.ASSISTANT, blocks=(Text(text=text),))]))
        return self.block

    @property
    def block(self):
        return next(each for each in self.view.row_viewport.rows.row(0).blocks if isinstance(each, DiagramBlock))

    def press(self, name):
        row = self.view.row_viewport.rows.row(0)
        index, control = next((at, each) for at, each in row.controls() if each.name == name)
        corner = row.stack.block_box(index).topLeft() + self.view.row_viewport.row_box(0).topLeft()
        QTest.mouseClick(self.view.viewport(), Qt.MouseButton.LeftButton, pos=corner + control.box.center())

    def names(self):
        return [control.name for _, control in self.view.row_viewport.rows.row(0).controls()]

    def wait_for(self, name):
        self.bot.waitUntil(lambda: name in self.names())


@pytest.fixture
def stand(qtbot, tmp_path, python):
    return Stand(qtbot, tmp_path, python)


SOURCE = "flowchart TD\n A --> B"


def test_it_is_shown_and_hidden_again_and_opens_large(stand):
    block = stand.notify(f"Look:\n\n```mermaid\n{SOURCE}\n```\n\nEnd.")
    before = block.layout(700, stand.view._render_context.style)
    assert "Show diagram" in stand.names()
    stand.press("Show diagram")
    assert "Stop drawing" in stand.names()
    stand.wait_for("Show source")
    row = stand.view.row_viewport.rows.row(0)
    assert row.stack.block_box(1).height() > before
    middle = row.stack.block_box(1).center() + stand.view.row_viewport.row_box(0).topLeft()
    color = stand.view.viewport().grab().toImage().pixelColor(middle)
    assert (color.red(), color.green(), color.blue()) == (0x10, 0x80, 0x40)
    with stand.bot.waitSignal(stand.view.image_opened) as opened:
        stand.press("Open diagram")
    assert opened.args[0].data.startswith(b"\x89PNG")
    assert plain_of(row) == f"Look:\n\n{SOURCE}\n\nEnd."
    assert block.offset_at(QPoint(0, 5000)) == len(SOURCE)
    stand.press("Show source")
    assert stand.names() == ["Copy code", "Wrap lines", "Save code as…", "Show diagram"]
    assert row.stack.block_box(1).height() == before


def test_another_theme_draws_it_anew(stand):
    stand.notify(f"```mermaid\n{SOURCE}\n```")
    stand.press("Show diagram")
    stand.wait_for("Show source")
    stand.themes.use(DARK, 100)
    stand.wait_for("Show source")
    assert len(stand.view._render_context.diagrams._cache) == 2


def test_what_cannot_be_drawn_says_why_above_its_source(stand):
    block = stand.notify("```mermaid\nwrong\n```")
    stand.press("Show diagram")
    stand.bot.waitUntil(lambda: block._error is not None)
    assert diagram_error_sentence(block._error) == (
        "This diagram cannot be drawn: Parse error on line 2. Ask the model to correct it, or correct the source "
        "yourself."
    )
    assert "Show diagram" in stand.names()
    assert block._header_height > stand.view._render_context.style.px(34)


def test_stop_ends_it(stand):
    block = stand.notify("```mermaid\nhang\n```")
    stand.press("Show diagram")
    stand.bot.waitUntil(lambda: bool(stand.view._render_context.diagrams._renderer._workers))
    stand.press("Stop drawing")
    stand.bot.waitUntil(lambda: not stand.view._render_context.diagrams._job_queue.is_busy)
    assert block._error is None
    assert "Show diagram" in stand.names()


def test_a_source_that_still_grows_offers_nothing(stand):
    transcript = Transcript()
    feed = Feed(transcript)
    stand.view.set_transcript(transcript)
    stand.view.apply(feed(TurnStarted("t", "m", "model")))
    stand.view.apply(feed(ContentDelta("```mermaid\nflowchart TD\n A")))
    assert "Show diagram" not in stand.names()
    stand.view.apply(feed(ContentDelta(" --> B\n```\n\nx")))
    assert "Show diagram" in stand.names()


def test_other_code_is_no_diagram(stand):
    stand.view.set_transcript(Transcript([Message(role=Role.ASSISTANT, blocks=(Text(text="```py\nx\n```"),))]))
    assert "Show diagram" not in stand.names()


@pytest.mark.parametrize("reason", [each for each in DiagramErrorReason if each is not DiagramErrorReason.STOPPED])
def test_every_reason_is_a_sentence(qapp, reason):
    words = diagram_error_sentence(DiagramError(reason, "Error: \x1b[31m\u202ebad"))
    assert words.endswith(".")
    assert "\u202e" not in words
    assert ("desktop-agent[diagrams]" in words) == (reason is DiagramErrorReason.NOT_INSTALLED)


class Scripted(DiagramRenderer):
    """Answers at once; remembers what it was asked for."""

    def __init__(self, *answers):
        super().__init__("python")
        self.answers, self.asked, self.stopped = list(answers), [], []

    def draw(self, sketch):
        self.asked.append(sketch)
        answer = self.answers.pop(0)
        return answer() if callable(answer) else answer

    def stop(self, sketch):
        self.stopped.append(sketch)


def failed(stand, block):
    stand.bot.waitUntil(lambda: block._error is not None)


def test_what_failed_is_not_drawn_again_by_a_rebuild(stand):
    renderer = stand.view._render_context.diagrams._renderer = Scripted(
        *[DiagramError(DiagramErrorReason.WRONG, "bad")] * 3
    )
    block = stand.notify(f"```mermaid\n{SOURCE}\n```")
    stand.press("Show diagram")
    failed(stand, block)
    stand.themes.use(DARK, 100)
    stand.view.grab()
    stand.themes.use(DARK, 120)
    stand.view.grab()
    stand.bot.waitUntil(lambda: not stand.view._render_context.diagrams._job_queue.is_busy)
    assert len(renderer.asked) == 1
    assert "Show diagram" in stand.names()


def test_the_same_source_fails_once_until_the_person_asks_again(stand):
    renderer = stand.view._render_context.diagrams._renderer = Scripted(
        *[DiagramError(DiagramErrorReason.TOO_SLOW)] * 3
    )
    block = stand.notify(f"```mermaid\n{SOURCE}\n```\n\nx")
    stand.press("Show diagram")
    failed(stand, block)
    other = DiagramBlock(block.text, "mermaid", block._callbacks, replace(block._diagram_callbacks, shown=True))
    other.layout(700, stand.view._render_context.style)
    assert other._error == DiagramError(DiagramErrorReason.TOO_SLOW)
    assert len(renderer.asked) == 1
    stand.press("Show diagram")
    stand.bot.waitUntil(lambda: len(renderer.asked) == 2)
    failed(stand, block)


def test_what_was_stopped_is_not_remembered_as_failed(stand):
    renderer = stand.view._render_context.diagrams._renderer = Scripted(
        DiagramError(DiagramErrorReason.STOPPED), DiagramError(DiagramErrorReason.WRONG, "x")
    )
    block = stand.notify(f"```mermaid\n{SOURCE}\n```")
    stand.press("Show diagram")
    stand.wait_for("Show diagram")
    assert block._error is None
    stand.press("Show diagram")
    failed(stand, block)
    assert len(renderer.asked) == 2


def test_the_old_one_is_stopped_when_another_is_awaited(stand):
    go = threading.Event()

    def killed():
        go.wait(5)
        return DiagramError(DiagramErrorReason.BROKE)

    renderer = stand.view._render_context.diagrams._renderer = Scripted(
        killed, DiagramError(DiagramErrorReason.WRONG, "bad")
    )
    stand.notify(f"```mermaid\n{SOURCE}\n```")
    stand.press("Show diagram")
    stand.bot.waitUntil(lambda: len(renderer.asked) == 1)
    light, dark = stand.themes.theme, DARK
    stand.themes.use(dark, 100)
    stand.view.grab()
    assert renderer.stopped == renderer.asked[:1]
    # Back again, before the one that was ended has gone: what it says is not the answer to the second question.
    stand.themes.use(light, 100)
    stand.view.grab()
    block = stand.block
    go.set()
    failed(stand, block)
    assert block._error == DiagramError(DiagramErrorReason.WRONG, "bad")
    assert renderer.asked[0] == renderer.asked[1]
    assert len(renderer.asked) == 2
