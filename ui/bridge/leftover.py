"""What the disk refused until the end, for the screens."""

from dataclasses import dataclass

from desktop_agent.engine.unsaved import Unsaved, as_markdown
from desktop_agent.vocabulary.errors import Sentence

_NAMED = 3
"""So many conversations are named; the others are counted."""
_DRAFT = Sentence("What is being written could not be saved.")


@dataclass(frozen=True, slots=True)
class Leftover:
    """What the disk refused: conversations, and the text of what was being written."""

    conversations: tuple[Unsaved, ...] = ()
    draft: str = ""

    def __bool__(self) -> bool:
        return bool(self.conversations or self.draft)

    @property
    def sentence(self) -> Sentence:
        """What could not be saved, and why."""
        if not self.conversations:
            return _DRAFT
        titles = ", ".join(f"“{each.record.title}”" for each in self.conversations[:_NAMED])
        more = len(self.conversations) - _NAMED
        values = {"titles": titles, "more": str(more), "why": self.conversations[0].reason.sentence}
        if more > 0:
            return Sentence("{titles} and {more} more could not be saved: {why}", values)
        return Sentence("{titles} could not be saved: {why}", values)

    def as_file(self) -> bytes:
        """See `desktop_agent.engine.unsaved`."""
        return as_markdown(self.conversations, self.draft).encode("utf-8", "backslashreplace")
