"""What an import tells the person: what came, what was left out, and why; or why nothing came."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from desktop_agent.types.errors import AgentError, Sentence

_MAX_NOTES = 200
_MAX_VALUE_LENGTH = 80
_OTHERS = Sentence("More was not understood; only the first kinds are listed.")


class ExchangeFailed(AgentError):
    """An export that cannot be read at all."""

    kind: ClassVar[str] = "exchange"
    default_remedy: ClassVar[str] = "Choose the archive, the folder or the conversations.json of an export."


class Omission(StrEnum):
    """What is left out of other programs' histories."""

    HIDDEN = "hidden"
    UNKNOWN = "unknown"
    SUMMARY = "summary"
    BAD_LINE = "bad_line"
    LONG_LINE = "long_line"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    LINK = "link"
    UNREADABLE_FILE = "unreadable_file"
    COMPRESSED = "compressed"
    PICTURE = "picture"
    REPEATED = "repeated"
    MISSING_PARENT = "missing_parent"
    CIRCLE = "circle"
    STRAY_RESULT = "stray_result"

    @property
    def template(self) -> str:
        """The template of its sentence."""
        return _SENTENCES[self].template


_SENTENCES = {
    Omission.HIDDEN: Sentence("Internal entries of the other program ({name})."),
    Omission.UNKNOWN: Sentence("Entries of an unknown kind ({name})."),
    Omission.SUMMARY: Sentence("Summaries of older messages, which are all here."),
    Omission.BAD_LINE: Sentence("Damaged or unfinished entries."),
    Omission.LONG_LINE: Sentence("Entries that are too long."),
    Omission.TOO_LARGE: Sentence("Files of which only the beginning was read."),
    Omission.TOO_MANY: Sentence("Ends of lists that are too long."),
    Omission.LINK: Sentence("Links, which are not followed."),
    Omission.UNREADABLE_FILE: Sentence("Files that cannot be read."),
    Omission.COMPRESSED: Sentence(
        "Conversations compressed with zstd (.jsonl.zst), which this program cannot unpack. Unpack them with “zstd -d” "
        "first."
    ),
    Omission.PICTURE: Sentence("Pictures that are damaged, too large, or only named."),
    Omission.REPEATED: Sentence("Duplicate entries."),
    Omission.MISSING_PARENT: Sentence("Messages whose previous message is missing; they follow the one above them."),
    Omission.CIRCLE: Sentence("Messages that name themselves as the message before; each begins a branch."),
    Omission.STRAY_RESULT: Sentence("Results of calls that are missing."),
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A conversation that was left out. `title` is its title there, or its place in the file."""

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

    def add_all(self, other: "ImportReport") -> None:
        """Count what is in another report as well."""
        for sentence, count in other.notes:
            self.add(sentence, count)

    def omit(self, omission: Omission, name: str = "") -> None:
        """Count something that was left out; `name` is the program's word for it, such as a type unknown here."""
        self.add(Sentence(omission.template, {"name": name} if "{name}" in omission.template else {}))

    @property
    def omissions(self) -> dict[tuple[Omission, str], int]:
        """Return how often each kind of thing was left out under each name."""
        kinds = {omission.template: omission for omission in Omission}
        return {
            (kinds[sentence.template], str(sentence.values.get("name", ""))): count
            for sentence, count in self._notes.values()
            if sentence.template in kinds
        }

    def count(self, omission: Omission) -> int:
        """Return how often this was counted under any name."""
        return sum(count for (kind, _), count in self.omissions.items() if kind is omission)

    @property
    def notes(self) -> Iterable[tuple[Sentence, int]]:
        """The lines, in the order in which they first came up, and how often."""
        return tuple(self._notes.values())
