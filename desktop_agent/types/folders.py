"""Folders of conversations, and where a conversation is: its folder, pin, archive and tags."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypedDict

MAX_FOLDER_NAME = 80
MAX_FOLDER_DEPTH = 16
"""Levels of folders within one another."""
MAX_FOLDER_INSTRUCTIONS = 200_000
"""Characters."""
MAX_TAG = 40
MAX_TAGS = 50
"""Of one conversation."""


class FolderColour(StrEnum):
    """The colours of folders. Their names are stored; the theme decides what they look like."""

    GREY = "grey"
    RED = "red"
    ORANGE = "orange"
    YELLOW = "yellow"
    GREEN = "green"
    TEAL = "teal"
    BLUE = "blue"
    PURPLE = "purple"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder. `parent` is the id of the folder that it is in; None at the top.

    `instructions` hold for every conversation in it, however deep.
    """

    id: str
    name: str
    colour: FolderColour = FolderColour.GREY
    parent: str | None = None
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class FolderLevel:
    """What the list shows beside conversations: the folders from the top to this one, and those in it, by name.

    `path` is empty at the top. `has_archive`: there are archived conversations. `is_archive`: these are listed.
    """

    path: tuple[Folder, ...] = ()
    folders: tuple[Folder, ...] = ()
    has_archive: bool = False
    is_archive: bool = False

    @property
    def place(self) -> str:
        """Return the id of the folder; "" for the top, and a word for the archive."""
        return "archive" if self.is_archive else self.path[-1].id if self.path else ""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a conversation is. `folder` is the id of one, None at the top; `tags` are in alphabetical order."""

    conversation_id: str
    folder: str | None = None
    pinned_at: datetime | None = None
    archived_at: datetime | None = None
    tags: tuple[str, ...] = ()


class PlacementChanges(TypedDict, total=False):
    """Where conversations are to be; what is absent stays. `folder` is the id of one, None the top."""

    folder: str | None
    pinned: bool
    archived: bool
    add_tags: Sequence[str]
    remove_tags: Sequence[str]


def clean_name(text: str, most: int) -> str:
    """Return the name of a folder or a tag on one line of at most so many characters."""
    return " ".join(text.split())[:most].strip()


def clean_instructions(text: str) -> str:
    """Return the instructions of a folder as they are stored: lone surrogates cannot be."""
    return text.strip().encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_tags(names: Iterable[str]) -> tuple[str, ...]:
    """Return the tags in alphabetical order, each of them once, whatever its case."""
    tags: dict[str, str] = {}
    for name in names:
        clean = clean_name(name, MAX_TAG)
        tags.setdefault(clean.casefold(), clean)
    tags.pop("", None)
    return tuple(sorted(tags.values(), key=str.casefold)[:MAX_TAGS])


def clean_path(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of nested folders, outermost first, no deeper than folders may be."""
    path = tuple(clean_name(name, MAX_FOLDER_NAME) for name in names)
    return tuple(filter(None, path))[:MAX_FOLDER_DEPTH]


def folder_paths(folders: Iterable[Folder]) -> dict[str, tuple[str, ...]]:
    """Return the names from the top to each folder, by its id."""
    by_id = {folder.id: folder for folder in folders}
    paths: dict[str, tuple[str, ...]] = {}
    for folder in by_id.values():
        names: list[str] = []
        current: Folder | None = folder
        # A circle can only come from a damaged file.
        while current is not None and len(names) < 2 * MAX_FOLDER_DEPTH:
            names.append(current.name)
            current = None if current.parent is None else by_id.get(current.parent)
        paths[folder.id] = tuple(reversed(names))
    return paths
