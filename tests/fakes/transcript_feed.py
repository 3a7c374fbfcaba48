"""Feeds a real transcript with real envelopes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from desktop_agent.conversation.items import Change
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import StoredSource
from desktop_agent.types.engine_events import Envelope


class Feed:
    """Each call is one event, a tenth of a second after the one before."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self._seq = 0
        self._at = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self, event, after: float = 0.1) -> list[Change]:
        self._seq += 1
        self._at += timedelta(seconds=after)
        return self.transcript.apply(Envelope(self._seq, "run", None, "turn", self._at, event))


@dataclass
class NoPictures:
    """Files named by digest in a folder."""

    folder: Path

    def path_of(self, source: StoredSource) -> Path:
        return self.folder / source.digest


def read_all(row) -> None:
    """Read what of a row's text was not read yet."""
    while (at := row.stack.last_lazy_section()) is not None:
        row.stack.read(at)
