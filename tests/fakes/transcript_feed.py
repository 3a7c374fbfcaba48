"""Feeds a real transcript with events in real envelopes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from desktop_agent.conversation.items import Change
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import StoredSource
from desktop_agent.types.engine_events import Envelope


class Feed:
    """Applies one event per call, `after` seconds after the one before."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self._seq = 0
        self._moment = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self, event, after: float = 0.1) -> list[Change]:
        self._seq += 1
        self._moment += timedelta(seconds=after)
        return self.transcript.apply(Envelope(self._seq, "run", None, "turn", self._moment, event))


@dataclass
class NoPictures:
    """A picture store that only knows paths: files of a folder, named by digest."""

    folder: Path

    def path_of(self, source: StoredSource) -> Path:
        return self.folder / source.digest


def read_all(row) -> None:
    """Parse all lazy sections of a row."""
    while (section := row.stack.last_lazy_section()) is not None:
        row.stack.read(section)
