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


class DiagramHarness:
    def __init__(self, qtbot, tmp_path, python):
        self.bot, self.themes = qtbot, ThemeSource()
        self.view = TranscriptView(self.themes, NoPictures(tmp_path))
        self.view._render_context.diagrams._renderer = DiagramRenderer(python)
        qtbot.addWidget(self.view, before_close_func=lambda view: view.close_workers())
        self.view.resize(800, 600)
        self.view.show()

    def notify(self, text):
        self.view.set_transcript(Transcript([Message(role=Role.ASSISTANT, blocks=(Text(text=text),))]))
        return self.block

    @property
    def block(self):
        return next(block for block in self.view.row_viewport.rows.row(0).blocks if isinstance(block, DiagramBlock))

    def press(self, name):
        row = self.view.row_viewport.rows.row(0)
        index, control = next((at, control) for at, control in row.controls() if control.name == name)
        corner = row.stack.block_box(index).topLeft() + self.view.row_viewport.row_box(0).topLeft()
        QTest.mouseClick(self.view.viewport(), Qt.MouseButton.LeftButton, pos=corner + control.box.center())

    def names(self):
        return [control.name for _, control in self.view.row_viewport.rows.row(0).controls()]

    def wait_for(self, name):
        self.bot.waitUntil(lambda: name in self.names())


@pytest.fixture
def harness(qtbot, tmp_path, python):
    return DiagramHarness(qtbot, tmp_path, python)


SOURCE = "flowchart TD\n A --> B"


def test_it_is_shown_and_hidden_again_and_opens_large(harness):
    block = harness.notify(f"Look:\n\n```mermaid\n{SOURCE}\n```\n\nEnd.")
    height = block.layout(700, harness.view._render_context.style)
    assert "Show diagram" in harness.names()
    harness.press("Show diagram")
    assert "Stop drawing" in harness.names()
    harness.wait_for("Show source")
    row = harness.view.row_viewport.rows.row(0)
    assert row.stack.block_box(1).height() > height
    center = row.stack.block_box(1).center() + harness.view.row_viewport.row_box(0).topLeft()
    color = harness.view.viewport().grab().toImage().pixelColor(center)
    assert (color.red(), color.green(), color.blue()) == (0x10, 0x80, 0x40)
    with harness.bot.waitSignal(harness.view.image_opened) as opened:
        harness.press("Open diagram")
    assert opened.args[0].data.startswith(b"\x89PNG")
    assert plain_of(row) == f"Look:\n\n{SOURCE}\n\nEnd."
    assert block.offset_at(QPoint(0, 5000)) == len(SOURCE)
    harness.press("Show source")
    assert harness.names() == ["Copy code", "Wrap lines", "Save code as…", "Show diagram"]
    assert row.stack.block_box(1).height() == height


def test_another_theme_draws_it_anew(harness):
    harness.notify(f"```mermaid\n{SOURCE}\n```")
    harness.press("Show diagram")
    harness.wait_for("Show source")
    harness.themes.use(DARK, 100)
    harness.wait_for("Show source")
    assert len(harness.view._render_context.diagrams._cache) == 2


def test_what_cannot_be_drawn_says_why_above_its_source(harness):
    block = harness.notify("```mermaid\nwrong\n```")
    harness.press("Show diagram")
    harness.bot.waitUntil(lambda: block._error is not None)
    assert diagram_error_sentence(block._error) == (
        "This diagram cannot be drawn: Parse error on line 2. Ask the model to correct it, or correct the source "
        "yourself."
    )
    assert "Show diagram" in harness.names()
    assert block._header_height > harness.view._render_context.style.px(34)


def test_stop_ends_it(harness):
    block = harness.notify("```mermaid\nhang\n```")
    harness.press("Show diagram")
    (attempt,) = harness.view._render_context.diagrams._attempts.values()
    harness.bot.waitUntil(lambda: bool(attempt.worker.started))
    harness.press("Stop drawing")
    harness.bot.waitUntil(lambda: not harness.view._render_context.diagrams._job_queue.is_busy)
    assert block._error is None
    assert "Show diagram" in harness.names()


def test_a_source_that_still_grows_offers_nothing(harness):
    transcript = Transcript()
    feed = Feed(transcript)
    harness.view.set_transcript(transcript)
    harness.view.apply(feed(TurnStarted("t", "m", "model")))
    harness.view.apply(feed(ContentDelta("```mermaid\nflowchart TD\n A")))
    assert "Show diagram" not in harness.names()
    harness.view.apply(feed(ContentDelta(" --> B\n```\n\nx")))
    assert "Show diagram" in harness.names()


def test_other_code_is_no_diagram(harness):
    harness.view.set_transcript(Transcript([Message(role=Role.ASSISTANT, blocks=(Text(text="```py\nx\n```"),))]))
    assert "Show diagram" not in harness.names()


@pytest.mark.parametrize(
    "reason", [reason for reason in DiagramErrorReason if reason is not DiagramErrorReason.STOPPED]
)
def test_every_reason_is_a_sentence(qapp, reason):
    words = diagram_error_sentence(DiagramError(reason, "Error: \x1b[31m\u202ebad"))
    assert words.endswith(".")
    assert "\u202e" not in words
    assert ("desktop-agent[diagrams]" in words) == (reason is DiagramErrorReason.NOT_INSTALLED)


class Scripted(DiagramRenderer):
    """A renderer that answers at once and records its requests."""

    def __init__(self, *answers):
        super().__init__("python")
        self.answers, self.asked, self.workers = list(answers), [], []

    def draw(self, sketch, worker):
        self.asked.append(sketch)
        self.workers.append(worker)
        answer = self.answers.pop(0)
        return answer() if callable(answer) else answer


def failed(harness, block):
    harness.bot.waitUntil(lambda: block._error is not None)


def test_what_failed_is_not_drawn_again_by_a_rebuild(harness):
    renderer = harness.view._render_context.diagrams._renderer = Scripted(
        *[DiagramError(DiagramErrorReason.WRONG, "bad")] * 3
    )
    block = harness.notify(f"```mermaid\n{SOURCE}\n```")
    harness.press("Show diagram")
    failed(harness, block)
    harness.themes.use(DARK, 100)
    harness.view.grab()
    harness.themes.use(DARK, 120)
    harness.view.grab()
    harness.bot.waitUntil(lambda: not harness.view._render_context.diagrams._job_queue.is_busy)
    assert len(renderer.asked) == 1
    assert "Show diagram" in harness.names()


def test_the_same_source_fails_once_until_the_person_asks_again(harness):
    renderer = harness.view._render_context.diagrams._renderer = Scripted(
        *[DiagramError(DiagramErrorReason.TOO_SLOW)] * 3
    )
    block = harness.notify(f"```mermaid\n{SOURCE}\n```\n\nx")
    harness.press("Show diagram")
    failed(harness, block)
    second = DiagramBlock(block.text, "mermaid", block._callbacks, replace(block._diagram_callbacks, shown=True))
    second.layout(700, harness.view._render_context.style)
    assert second._error == DiagramError(DiagramErrorReason.TOO_SLOW)
    assert len(renderer.asked) == 1
    harness.press("Show diagram")
    harness.bot.waitUntil(lambda: len(renderer.asked) == 2)
    failed(harness, block)


def test_what_was_stopped_is_not_remembered_as_failed(harness):
    renderer = harness.view._render_context.diagrams._renderer = Scripted(
        DiagramError(DiagramErrorReason.STOPPED), DiagramError(DiagramErrorReason.WRONG, "x")
    )
    block = harness.notify(f"```mermaid\n{SOURCE}\n```")
    harness.press("Show diagram")
    harness.wait_for("Show diagram")
    assert block._error is None
    harness.press("Show diagram")
    failed(harness, block)
    assert len(renderer.asked) == 2


def test_the_old_one_is_stopped_when_another_is_awaited(harness):
    may_end = threading.Event()

    def killed():
        may_end.wait(5)
        return DiagramError(DiagramErrorReason.BROKE)

    renderer = harness.view._render_context.diagrams._renderer = Scripted(
        killed, DiagramError(DiagramErrorReason.WRONG, "bad")
    )
    harness.notify(f"```mermaid\n{SOURCE}\n```")
    harness.press("Show diagram")
    harness.bot.waitUntil(lambda: len(renderer.asked) == 1)
    light, dark = harness.themes.theme, DARK
    harness.themes.use(dark, 100)
    harness.view.grab()
    assert [worker._is_closed for worker in renderer.workers] == [True]
    # Back again, before the one that was ended has gone: what it says is not the answer to the second question.
    harness.themes.use(light, 100)
    harness.view.grab()
    block = harness.block
    may_end.set()
    failed(harness, block)
    assert block._error == DiagramError(DiagramErrorReason.WRONG, "bad")
    assert renderer.asked[0] == renderer.asked[1]
    assert len(renderer.asked) == 2
