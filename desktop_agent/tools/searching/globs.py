"""Patterns of file names: `*.py` anywhere, `src/**/*.py` by folders."""

import re
from collections.abc import Sequence
from fnmatch import translate

from desktop_agent.vocabulary.errors import ToolFailed

GLOB_LIMIT = 200
_MAX_STARS = 20
_ANY_FOLDERS = "**"


class Glob:
    """Which places a pattern means: without a / it is about names, with one about the path below the folder.

    `**` stands for any number of folders. Raises ToolFailed for a pattern that is too long or too wild.
    """

    def __init__(self, pattern: str) -> None:
        wanted = pattern.strip().removeprefix("./")
        if len(wanted) > GLOB_LIMIT or wanted.count("*") > _MAX_STARS:
            raise ToolFailed("The pattern of names is too long or has too many stars in it.")
        parts = [part for part in wanted.split("/") if part]
        if not parts:
            raise ToolFailed("The pattern of names is empty.", "Name files like *.py or src/**/*.py.")
        if len(parts) == 1 and "/" not in wanted:
            parts = [_ANY_FOLDERS, *parts]
        self._parts = tuple(None if part == _ANY_FOLDERS else re.compile(translate(part)) for part in parts)

    def matches(self, path: Sequence[str]) -> bool:
        """Whether these components, from the folder to the file, are meant."""
        reached = {0}
        for name in path:
            reached = {after for at in self._expand(reached) for after in self._after(at, name)}
        return len(self._parts) in self._expand(reached)

    def _expand(self, reached: set[int]) -> set[int]:
        """With what a `**` that stands for no folder leads to."""
        opened = set(reached)
        for at, part in enumerate(self._parts):
            if at in opened and part is None:
                opened.add(at + 1)
        return opened

    def _after(self, at: int, name: str) -> tuple[int, ...]:
        if at == len(self._parts):
            return ()
        part = self._parts[at]
        if part is None:
            return (at,)
        return (at + 1,) if part.match(name) else ()
