"""The two sides that are compared: the transcript, and as its limit a plain QTextEdit that gets the same text."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QTextEdit

from desktop_agent.conversation.items import Change
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.engine_events import Envelope, Event, RunEnd, RunFinished, TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.bench.transcript.texts import Pictures, deltas_of
from tests.bench.transcript.window import Window, shown_window
from ui.transcript.view import TranscriptView

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Ours:
    """A transcript and its view in the window."""

    def __init__(self, window: Window, pictures: Pictures) -> None:
        self.view = TranscriptView(window.themes, pictures)
        self.transcript = Transcript()
        self.view.set_transcript(self.transcript)
        window.show_widget(self.view)

    def open(self, messages: Iterable[Message]) -> None:
        """Show a conversation."""
        self.transcript = Transcript(messages)
        self.view.set_transcript(self.transcript)

    def begin(self) -> None:
        """Show a question and the beginning of its answer."""
        changes = self.transcript.add_message(Message.user("Go on."))
        self.view.apply([*changes, *self.take(TurnStarted("t", "m", "model"))])

    def take(self, *events: Event) -> Sequence[Change]:
        """Apply events, and return each change once, as the bridge collects changes for a frame."""
        changes = [
            change
            for event in events
            for change in self.transcript.apply(Envelope(1, "run", None, "turn", _NOW, event))
        ]
        return list(dict.fromkeys(changes))

    def stream(self, frames: list[str]) -> Iterator[None]:
        """Show a frame at each step, and then the end of the answer."""
        for frame in frames:
            self.view.apply(self.take(*map(ContentDelta, deltas_of(frame))))
            yield
        self.view.apply(self.take(RunFinished(RunEnd.COMPLETED)))
        yield

    def close(self) -> None:
        """Stop the threads of the view."""
        self.view.close_workers()


class Plain:
    """The limit: a plain QTextEdit."""

    def __init__(self, window: Window) -> None:
        self.edit = QTextEdit()
        self.edit.setReadOnly(True)
        window.show_widget(self.edit)

    def begin(self) -> None:
        """Do nothing: the text is empty."""

    def stream(self, frames: list[str]) -> Iterator[None]:
        """Insert the deltas of a frame one by one at each step, and scroll to the end."""
        cursor, bar = QTextCursor(self.edit.document()), self.edit.verticalScrollBar()
        for frame in frames:
            for delta in deltas_of(frame):
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.insertText(delta)
            bar.setValue(bar.maximum())
            yield
        yield

    def close(self) -> None:
        """Do nothing: there are no threads."""


class Sides:
    """Makes either side, which replaces what the window showed."""

    def __init__(self, window: Window, pictures: Pictures) -> None:
        self._window = window
        self.pictures = pictures

    def ours(self) -> Ours:
        """Return an empty conversation."""
        return Ours(self._window, self.pictures)

    def limit(self) -> Plain:
        """Return an empty text."""
        return Plain(self._window)


@contextmanager
def both_sides() -> Generator[tuple[Window, Sides]]:
    """A window and the sides that it can show, until the context ends."""
    with TemporaryDirectory(prefix="desktop-agent-pictures-") as folder, shown_window() as window:
        yield window, Sides(window, Pictures(Path(folder)))
