"""Search for a text in files, in the worker process so that it can be ended, with globs and a walk over the files.

A regular expression may take practically for ever, and a thread cannot be ended.
"""

import re
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from desktop_agent.tools.files.text_files import NotText, decode_text
from desktop_agent.tools.workspace import FolderEntry, Workspace, WorkspacePath
from desktop_agent.types.errors import Sentence, ToolFailed

GLOB_LIMIT = 200
_MAX_STARS = 20
_ANY_FOLDERS = "**"


class Glob:
    """A pattern of paths: without a / it is about names, with one about the path below the folder.

    `**` stands for any number of folders. Raises ToolFailed for a pattern that is too long or too wild.
    """

    def __init__(self, pattern: str) -> None:
        cleaned = pattern.strip().removeprefix("./")
        if len(cleaned) > GLOB_LIMIT or cleaned.count("*") > _MAX_STARS:
            raise ToolFailed("The pattern of names is too long or has too many stars in it.")
        parts = list(filter(None, cleaned.split("/")))
        if not parts:
            raise ToolFailed("The pattern of names is empty.", "Name files like *.py or src/**/*.py.")
        if "/" not in cleaned:
            parts = [_ANY_FOLDERS, *parts]
        self._parts = tuple(None if part == _ANY_FOLDERS else re.compile(translate(part)) for part in parts)

    def matches(self, path: Sequence[str]) -> bool:
        """Return whether these components, from the folder to the file, match."""
        reached = {0}
        for name in path:
            reached = {following for index in self._expand(reached) for following in self._next_indexes(index, name)}
        return len(self._parts) in self._expand(reached)

    def _expand(self, reached: set[int]) -> set[int]:
        """Add the indexes that a `**` for no folder leads to."""
        expanded = set(reached)
        for index, part in enumerate(self._parts):
            if index in expanded and part is None:
                expanded.add(index + 1)
        return expanded

    def _next_indexes(self, index: int, name: str) -> tuple[int, ...]:
        if index == len(self._parts):
            return ()
        part = self._parts[index]
        if part is None:
            return (index,)
        return (index + 1,) if part.match(name) else ()


MAX_FILES = 100_000
MAX_DEPTH = 40
# A folder with more than this is not looked through as a whole.
_SCAN_LIMIT = 50_000


class FileWalk:
    """One walk. Hidden files and folders, links and special files are skipped; `is_cut` when it was too much."""

    def __init__(self, workspace: Workspace, place: WorkspacePath, check: Callable[[], None]) -> None:
        self._workspace = workspace
        self._place = place
        self._check = check
        self._seen = 0
        self.is_cut = False

    def files(self) -> Iterator[tuple[WorkspacePath, int]]:
        """Yield each file and its size in bytes. Raises ToolFailed where there is nothing, and what `check` raises."""
        status = self._workspace.stat(self._place) if self._place.parts else None
        if self._place.parts and status is None:
            raise ToolFailed(Sentence("There is no “{path}” in the workspace.", {"path": str(self._place)}))
        if status is not None and stat.S_ISREG(status.st_mode):
            yield self._place, status.st_size
            return
        entries = self._workspace.entries(self._place, _SCAN_LIMIT)
        yield from self._walk(self._place, entries, MAX_DEPTH)

    def _walk(
        self, place: WorkspacePath, entries: tuple[FolderEntry, ...], depth: int
    ) -> Iterator[tuple[WorkspacePath, int]]:
        self.is_cut |= len(entries) == _SCAN_LIMIT
        for entry in entries:
            self._check()
            if self._seen >= MAX_FILES:
                self.is_cut = True
                return
            if entry.name.startswith("."):
                continue
            entry_place = place.child(entry.name)
            if entry.kind == "file":
                self._seen += 1
                yield entry_place, entry.size
            elif entry.kind == "folder":
                yield from self._walk(entry_place, self._entries(entry_place, depth), depth - 1)

    def _entries(self, place: WorkspacePath, depth: int) -> tuple[FolderEntry, ...]:
        """Return the entries; none of a folder that is not ours to open, or gone by now."""
        if depth <= 0:
            self.is_cut = True
            return ()
        try:
            return self._workspace.entries(place, _SCAN_LIMIT)
        except ToolFailed:
            return ()


FILE_LIMIT = 10_000_000
MAX_LINE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search for, and where. `parts` is the path below the folder."""

    folder: str
    parts: tuple[str, ...]
    pattern: str
    names: str | None
    is_expression: bool
    ignore_case: bool
    context: int
    most: int


def compile_expression(pattern: str, *, is_expression: bool, ignore_case: bool) -> re.Pattern[str]:
    """Compile the expression. Raises re.error."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else re.NOFLAG)
    return re.compile(pattern if is_expression else re.escape(pattern), flags)


SearchMessage = (
    tuple[Literal["in"], str]
    | tuple[Literal["hit"], str, int, str, list[str], list[str]]
    | tuple[Literal["end"], dict[str, int]]
)
"""The file that is looked into now; the path, line, text, lines before and after of a match; counts at the end."""


def search(fields: dict[str, Any]) -> Iterator[SearchMessage]:
    """Yield what is found, and where."""
    request = SearchRequest(**fields)
    expression = compile_expression(
        request.pattern, is_expression=request.is_expression, ignore_case=request.ignore_case
    )
    workspace, place = Workspace(Path(request.folder)), WorkspacePath(request.parts)
    glob = Glob(request.names) if request.names else None
    walk = FileWalk(workspace, place, lambda: None)
    remaining, looked, large = request.most, 0, 0
    for file, size in walk.files():
        if glob is not None and not glob.matches(file.parts[len(place.parts) :] or file.parts[-1:]):
            continue
        if size > FILE_LIMIT:
            large += 1
            continue
        text = _read_text(workspace, file)
        if text is None:
            continue
        looked += 1
        yield "in", str(file)
        for hit in _find_matches(text, expression, request.context):
            if remaining == 0:
                yield "end", {"looked": looked, "large": large, "cut": walk.is_cut, "more": True}
                return
            remaining -= 1
            yield "hit", str(file), *hit
    yield "end", {"looked": looked, "large": large, "cut": walk.is_cut, "more": False}


def _read_text(workspace: Workspace, place: WorkspacePath) -> str | None:
    """Return None for what is no text, gone by now, or not ours to read."""
    try:
        return decode_text(workspace.read(place, FILE_LIMIT)).text
    except (NotText, ToolFailed):
        return None


def _find_matches(
    text: str, expression: re.Pattern[str], context: int
) -> Iterator[tuple[int, str, list[str], list[str]]]:
    """Yield each line in which a match begins, once: its number, itself, and the lines around it."""
    lines: list[str] = []
    starts: list[int] = []
    last = -1
    for match in expression.finditer(text):
        if not lines:
            lines = text.removesuffix("\n").split("\n")
            starts = list(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))
        index = bisect_right(starts, match.start()) - 1
        if index == last or match.start() > starts[index] + len(lines[index]):
            continue
        last = index
        before, after = lines[max(index - context, 0) : index], lines[index + 1 : index + 1 + context]
        yield (
            index + 1,
            _excerpt(lines[index], match.start() - starts[index]),
            [*map(_shorten, before)],
            [*map(_shorten, after)],
        )


def _excerpt(line: str, offset: int) -> str:
    """Return the line; of a long one the part around the match."""
    start = max(offset - MAX_LINE_LENGTH // 2, 0) if len(line) > MAX_LINE_LENGTH else 0
    return ("…" if start else "") + _shorten(line[start:])


def _shorten(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else line[:MAX_LINE_LENGTH] + "…"
