"""The part of the program that looks for a text in files: a process of its own, so that it can be ended.

A regular expression may take longer than the world lasts, and no thread can be ended. Writes a line of JSON for each
thing that it says: `["in", path]` before it looks into a file, `["hit", path, line, text, before, after]` for a match,
`["end", notes]` last.
"""

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from desktop_agent.tools.files.text_files import NotText, decode_text
from desktop_agent.tools.searching.globs import Glob
from desktop_agent.tools.searching.walking import FileWalk
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.errors import ToolFailed

FILE_LIMIT = 10_000_000
MAX_LINE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to look for, and where. `parts` is the place in the folder."""

    folder: str
    parts: tuple[str, ...]
    pattern: str
    names: str | None
    is_expression: bool
    ignore_case: bool
    context: int
    most: int


def encode_request(request: SearchRequest) -> str:
    """What the process reads."""
    return json.dumps(asdict(request))


def _decode_request(text: bytes) -> SearchRequest:
    given: dict[str, Any] = json.loads(text)
    given["parts"] = tuple(given["parts"])
    return SearchRequest(**given)


def compile_expression(pattern: str, *, is_expression: bool, ignore_case: bool) -> re.Pattern[str]:
    """The expression that finds it. Raises re.error."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else re.NOFLAG)
    return re.compile(pattern if is_expression else re.escape(pattern), flags)


def main() -> int:
    """Read what is wanted, write what is found."""
    for said in _search(_decode_request(sys.stdin.buffer.read())):
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    return 0


def _search(request: SearchRequest) -> Iterator[list[object]]:
    expression = compile_expression(
        request.pattern, is_expression=request.is_expression, ignore_case=request.ignore_case
    )
    workspace, place = Workspace(Path(request.folder)), WorkspacePath(request.parts)
    glob = Glob(request.names) if request.names else None
    walk = FileWalk(workspace, place, lambda: None)
    left, looked, large = request.most, 0, 0
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
        yield ["in", str(file)]
        for hit in _find_matches(text, expression, request.context):
            if left == 0:
                yield ["end", {"looked": looked, "large": large, "cut": walk.is_cut, "more": True}]
                return
            left -= 1
            yield ["hit", str(file), *hit]
    yield ["end", {"looked": looked, "large": large, "cut": walk.is_cut, "more": False}]


def _read_text(workspace: Workspace, place: WorkspacePath) -> str | None:
    """None for what is no text, gone by now, or not ours to read."""
    try:
        return decode_text(workspace.read(place, FILE_LIMIT)).text
    except (NotText, ToolFailed):
        return None


def _find_matches(
    text: str, expression: re.Pattern[str], context: int
) -> Iterator[tuple[int, str, list[str], list[str]]]:
    """Each line in which a match begins, once: its number, itself, and the lines around it."""
    lines: list[str] = []
    starts: list[int] = []
    last = -1
    for match in expression.finditer(text):
        if not lines:
            lines = text.removesuffix("\n").split("\n")
            starts = _line_starts(lines)
        at = bisect_right(starts, match.start()) - 1
        if at == last or match.start() > starts[at] + len(lines[at]):
            continue
        last = at
        before, after = lines[max(at - context, 0) : at], lines[at + 1 : at + 1 + context]
        yield at + 1, _excerpt(lines[at], match.start() - starts[at]), [*map(_shorten, before)], [*map(_shorten, after)]


def _line_starts(lines: list[str]) -> list[int]:
    starts: list[int] = []
    at = 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return starts


def _excerpt(line: str, at: int) -> str:
    """The line; of a long one the part around the match."""
    begin = max(at - MAX_LINE_LENGTH // 2, 0) if len(line) > MAX_LINE_LENGTH else 0
    return ("…" if begin else "") + _shorten(line[begin:])


def _shorten(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else line[:MAX_LINE_LENGTH] + "…"
