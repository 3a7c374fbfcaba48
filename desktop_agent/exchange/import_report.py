"""What an import tells the person: what came, what was left out, and why; or why nothing came."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from desktop_agent.types.errors import AgentError, Sentence

_MAX_NOTES = 200
_MAX_VALUE_LENGTH = 80
_OTHERS = Sentence("More was not understood; only the first kinds of it are listed.")


class ExchangeFailed(AgentError):
    """An export that cannot be read at all."""

    kind: ClassVar[str] = "exchange"
    default_remedy: ClassVar[str] = "Choose the archive, the folder or the conversations.json of an export."


@dataclass(frozen=True, slots=True)
class Skipped:
    """A conversation that was left out. `title` is what it is called there, or where it stands."""

    title: str
    reason: Sentence


@dataclass(slots=True)
class ImportReport:
    """Counts of what was read, and a line with a count for each kind of thing that was not understood or left out."""

    conversations: int = 0
    messages: int = 0
    pictures: int = 0
    skipped: int = 0
    _notes: dict[str, tuple[Sentence, int]] = field(default_factory=dict[str, tuple[Sentence, int]])

    def add(self, sentence: Sentence, count: int = 1) -> None:
        """Count something under a sentence; values of strangers are cut to a line.

        Of too many different sentences the rest is counted together.
        """
        values = {name: " ".join(str(value).split())[:_MAX_VALUE_LENGTH] for name, value in sentence.values.items()}
        sentence = Sentence(sentence.template, values)
        key = str(sentence)
        if key not in self._notes and len(self._notes) >= _MAX_NOTES:
            sentence, key = _OTHERS, str(_OTHERS)
        self._notes[key] = (sentence, self._notes.get(key, (sentence, 0))[1] + count)

    @property
    def notes(self) -> Iterable[tuple[Sentence, int]]:
        """The lines, in the order in which they first came up, and how often."""
        return tuple(self._notes.values())
