"""A finished block is announced once, and nothing before it is finished."""

from PySide6.QtWidgets import QScrollBar, QWidget

from desktop_agent.conversation.items import Removed, Updated
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ErrorOccurred,
    RunEnd,
    RunFinished,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta, ThinkingDelta
from tests.fakes.transcript_feed import Feed
from ui.transcript.accessibility.tree import Announcer
from ui.transcript.overlays import JumpButton
from ui.transcript.viewport.row_list import RowList
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.viewport import RowViewport


class Listener:
    def __init__(self, render_context, qtbot):
        self.heard: list[tuple[str, bool]] = []
        self.listening = True
        self.widget = QWidget()
        self.bar = QScrollBar(self.widget)
        qtbot.addWidget(self.widget)
        self.transcript = Transcript()
        self.feed = Feed(self.transcript)
        self.viewport = RowViewport(self.widget, RowList(self.transcript, render_context, 600, 400))
        jump_button = JumpButton(render_context.style, self.widget, self.widget)
        self.scroller = ScrollController(self.viewport, self.bar, jump_button, self.widget)
        self.announcer = Announcer(lambda words, urgent: self.heard.append((words, urgent)), lambda: self.listening)

    def send(self, *events):
        self.send_changes([change for event in events for change in self.feed(event)])

    def send_changes(self, changes):
        self.scroller.apply(changes)
        self.announcer.announce_changes(changes, self.viewport.rows)


def test_an_answer_is_said_once_when_it_is_finished_and_never_before(render_context, qtbot):
    listener = Listener(render_context, qtbot)
    listener.send(TurnStarted("t", "m", "model"))
    for piece in ("First ", "**para", "graph**.", "\n\nSec", "ond.\n", "\nThird"):
        listener.send(ContentDelta(piece))
    assert listener.heard == []
    listener.send(RunFinished(RunEnd.COMPLETED))
    assert listener.heard == [("First paragraph.\nSecond.\nThird", False)]
    listener.announcer.announce_changes([Updated(0, "state")], listener.viewport.rows)
    assert len(listener.heard) == 1


def test_thinking_tells_only_that_it_is_over(render_context, qtbot):
    listener = Listener(render_context, qtbot)
    listener.send(TurnStarted("t", "m", "model"), ThinkingDelta("A secret thought."))
    assert listener.heard == []
    listener.send(ContentDelta("Answer"))
    assert [words for words, _ in listener.heard] == ["Thinking: Thought for 1 s"]


def test_errors_are_urgent_and_calls_tell_that_they_wait_and_how_they_ended(render_context, qtbot):
    listener = Listener(render_context, qtbot)
    listener.send(TurnStarted("t", "m", "model"), ToolUse(id="a", name="run", input={}))
    listener.send(ApprovalRequested("approval", "a", "digest"))
    listener.send(ToolStarted("a", {}))
    listener.send(ToolFinished("a", ToolResult(tool_use_id="a", content=(), outcome=Outcome.SUCCEEDED)))
    assert [words for words, _ in listener.heard] == [
        "Tool call: run, Waiting for you",
        "Tool call: run, Done",
    ]
    listener.send(ErrorOccurred("k", "m", Sentence("It broke."), Sentence("Try again.")))
    words, urgent = listener.heard[-1]
    assert words.startswith("Error: It broke.")
    assert urgent
    listener.send(ErrorOccurred("k", "m", Sentence("It broke."), Sentence("Try again.")))
    assert listener.heard[-1] == ("Error: It broke.\nFailed 2 times. Try again.", True)


def test_what_was_said_of_rows_that_are_gone_is_forgotten(render_context, qtbot):
    listener = Listener(render_context, qtbot)
    # Not numbers: they would be the same failure, counted.
    for word in ("once", "twice", "again"):
        listener.send(ErrorOccurred("k", word, Sentence(f"It broke {word}."), Sentence("Try again.")))
    assert len(listener.announcer._announced) == 3
    del listener.transcript._items[1]
    listener.send_changes([Removed(1, 1)])
    assert listener.announcer._announced == {(item.id, "there") for item in listener.transcript}
    listener.announcer.announce_changes([Updated(0, "state")], listener.viewport.rows)
    assert len(listener.heard) == 3


def test_another_conversation_begins_with_nothing_said(render_context, qtbot):
    listener = Listener(render_context, qtbot)
    listener.send(ErrorOccurred("k", "m", Sentence("It broke."), Sentence("Try again.")))
    other = RowList(Transcript(), render_context, 600, 400)
    listener.announcer.announce_changes([], other)
    assert listener.announcer._announced == set()


def test_nothing_is_said_while_nobody_listens(render_context, qtbot):
    listener = Listener(render_context, qtbot)
    listener.listening = False
    listener.send(TurnStarted("t", "m", "model"), ContentDelta("A.\n\nB.\n"), RunFinished(RunEnd.COMPLETED))
    assert listener.heard == []


def test_another_version_is_not_announced_neither_then_nor_later(render_context, qtbot):
    listener = Listener(render_context, qtbot)
    changes = [
        change for text in ("One.", "Two.") for change in listener.transcript.add_message(Message.assistant(text))
    ]
    listener.scroller.apply(changes)
    listener.announcer.announce_changes(changes, listener.viewport.rows, silently=True)
    listener.announcer.announce_changes([Updated(0, "state")], listener.viewport.rows)
    assert listener.heard == []
    listener.send_changes(listener.transcript.add_message(Message.assistant("Three.")))
    assert listener.heard == [("Three.", False)]
