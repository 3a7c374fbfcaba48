"""What a reader did not understand or left out on purpose: counted by kind, and said in sentences."""

from enum import StrEnum

from desktop_agent.types.errors import Sentence


class Omission(StrEnum):
    """Why something of another program's history is not in the conversation."""

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


_SENTENCES = {
    Omission.HIDDEN: "Entries that the program keeps for itself ({name}): {count}.",
    Omission.UNKNOWN: "Entries of an unknown kind ({name}): {count}.",
    Omission.SUMMARY: "Summaries of older messages, which are all here: {count}.",
    Omission.BAD_LINE: "Damaged or unfinished entries: {count}.",
    Omission.LONG_LINE: "Entries that are too long: {count}.",
    Omission.TOO_LARGE: "Files of which only the beginning was read: {count}.",
    Omission.TOO_MANY: "Ends of lists that are too long: {count}.",
    Omission.LINK: "Links, which are not followed: {count}.",
    Omission.UNREADABLE_FILE: "Files that cannot be read: {count}.",
    Omission.COMPRESSED: "Compressed conversations, which cannot be read here: {count}.",
    Omission.PICTURE: "Pictures that are damaged, too large, or only named: {count}.",
    Omission.REPEATED: "Entries that are there twice: {count}.",
    Omission.MISSING_PARENT: "Messages whose predecessor is missing; they follow the one before them: {count}.",
    Omission.CIRCLE: "Messages that follow themselves; they begin a branch: {count}.",
    Omission.STRAY_RESULT: "Results of calls that are missing: {count}.",
}


class ReadReport:
    """How often each kind of thing was left out. Holds a bounded number of kinds and names."""

    _MAX_KINDS = 60
    _MAX_NAME_LENGTH = 60

    def __init__(self) -> None:
        self.counts: dict[tuple[Omission, str], int] = {}

    def add(self, omission: Omission, name: str = "", count: int = 1) -> None:
        """Count something; `name` is the program's word for it, such as a type that is unknown here."""
        key = (omission, name[: self._MAX_NAME_LENGTH])
        if key not in self.counts and len(self.counts) >= self._MAX_KINDS:
            key = (omission, "…")
        self.counts[key] = self.counts.get(key, 0) + count

    def count(self, omission: Omission) -> int:
        """Return how often this was counted under any name."""
        return sum(count for (kind, _), count in self.counts.items() if kind is omission)

    def sentences(self) -> tuple[Sentence, ...]:
        """Return a line for each kind."""
        return tuple(
            Sentence(_SENTENCES[omission], {"name": name, "count": f"{count:,}"})
            for (omission, name), count in self.counts.items()
        )
