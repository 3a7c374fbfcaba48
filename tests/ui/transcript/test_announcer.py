"""A finished block is announced once, and nothing before it is finished."""

from PySide6.QtWidgets import QScrollBar, QWidget

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.engine_events import ErrorOccurred, RunEnd, RunFinished, ToolStarted, TurnStarted
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.provider_events import ContentDelta
from tests.ui.transcript.feeding import Feed
from ui.transcript.accessibility.announcer import Announcer
from ui.transcript.surface.row_list import RowList
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.scroller import Scroller


class Listener:
    def __init__(self, stage, qtbot):
        self.heard: list[tuple[str, bool]] = []
        self.listening = True
        self.viewport = QWidget()
        self.bar = QScrollBar(self.viewport)
        qtbot.addWidget(self.viewport)
        self.transcript = Transcript()
        self.feed = Feed(self.transcript)
        self.screen = Screen(self.viewport, RowList(self.transcript, stage, 600, 400))
        self.scroller = Scroller(self.screen, self.bar, self.viewport)
        self.announcer = Announcer(lambda words, urgent: self.heard.append((words, urgent)), lambda: self.listening)

    def send(self, *events):
        changes = [change for event in events for change in self.feed(event)]
        self.scroller.apply(changes)
        self.announcer.changed(changes, self.screen.rows)


def test_each_block_once_when_it_is_closed(stage, qtbot):
    listener = Listener(stage, qtbot)
    listener.send(TurnStarted("t", "m", "model"))
    for piece in ("First ", "**para", "graph**.", "\n\nSec"):
        listener.send(ContentDelta(piece))
    assert listener.heard == []
    listener.send(ContentDelta("ond.\n"))
    assert listener.heard == [("First paragraph.", False)]
    listener.send(ContentDelta("\nThird"))
    listener.send(RunFinished(RunEnd.COMPLETED))
    assert listener.heard == [("First paragraph.", False), ("Second.\nThird", False)]


def test_errors_are_urgent_and_calls_tell_their_state(stage, qtbot):
    listener = Listener(stage, qtbot)
    listener.send(TurnStarted("t", "m", "model"), ToolUse(id="a", name="run", input={}))
    listener.send(ToolStarted("a", {}))
    listener.send(ErrorOccurred("k", "m", Sentence("It broke."), Sentence("Try again.")))
    assert listener.heard[0] == ("Tool call: run: run, Running", False)
    words, urgent = listener.heard[-1]
    assert words.startswith("Error: It broke.")
    assert urgent


def test_nothing_is_said_while_nobody_listens(stage, qtbot):
    listener = Listener(stage, qtbot)
    listener.listening = False
    listener.send(TurnStarted("t", "m", "model"), ContentDelta("A.\n\nB.\n"), RunFinished(RunEnd.COMPLETED))
    assert listener.heard == []
