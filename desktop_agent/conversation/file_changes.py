"""What a call changes in files, as a diff for people: of our own tools, and of those that other assistants call.

Tools of other programs that match ours already have our names. The others are Claude Code's
MultiEdit, Codex' and opencode's apply_patch, and Goose's editor; their shapes are those of
`desktop_agent.exchange.readers`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from desktop_agent.types.line_diff import MAX_COMPARED, DiffLine, diff_texts

_MAX_CHANGES = 200
_PATCH_FILES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ")
_PATCH_TOOLS = frozenset({"apply_patch", "patch"})
_EDITORS = frozenset({"text_editor", "developer__text_editor", "str_replace_based_edit_tool", "str_replace_editor"})

_EDITOR_KEYS = {
    "str_replace": ("old_str", "new_str"),
    "insert": ("", "new_str"),
    "create": ("", "file_text"),
    "write": ("", "file_text"),
}
"""By command of such an editor: the arguments with the text before and after; "" for none."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file and the lines of a diff, each with " ", "-" or "+" before it, and "@@" between parts of the file.

    `real` are how many lines of the file were added and removed when the call was over, where that is known.
    """

    path: str
    lines: tuple[str, ...]
    real: tuple[int, int] | None = None

    @property
    def counts(self) -> tuple[int, int]:
        """How many lines were added and removed; by the arguments alone where nothing else is known."""
        return self._written if self.real is None else self.real

    @property
    def is_diff(self) -> bool:
        """Whether the lines are a diff; else they are a whole text, of which not every line is new."""
        return self.real in {None, self._written} or self._written[0] != len(self.lines)

    @property
    def text(self) -> str:
        return "\n".join(self.lines if self.is_diff else (line[1:] for line in self.lines))

    @property
    def _written(self) -> tuple[int, int]:
        return sum(line.startswith("+") for line in self.lines), sum(line.startswith("-") for line in self.lines)


def file_changes(
    name: str, arguments: Mapping[str, Any], real: tuple[int, int] | None = None
) -> tuple[FileChange, ...]:
    """Return what a call with these arguments changes; nothing for a call that changes no file, or has another shape.

    `real` is as in FileChange, for the whole call; it is ignored where several files change.
    """
    changes = tuple(_changes(name, arguments))[:_MAX_CHANGES]
    return (replace(changes[0], real=real),) if len(changes) == 1 else changes


def changed_file(name: str, arguments: Mapping[str, Any], real: tuple[int, int] | None) -> FileChange | None:
    """Return the file that a call of a tool of ours changes, without its lines: they may be very many."""
    path = arguments.get("path")
    return FileChange(path, (), real) if name in {"edit_file", "write_file"} and isinstance(path, str) else None


def _changes(name: str, arguments: Mapping[str, Any]) -> Iterator[FileChange]:
    patch = next((arguments[key] for key in ("input", "patch", "patchText") if key in arguments), None)
    if name == "edit_file":
        yield from _edit(arguments, "path", "old_text", "new_text")
    elif name == "write_file":
        yield from _edit(arguments, "path", "", "content")
    elif name == "MultiEdit":
        yield from _edits(arguments)
    elif name in _PATCH_TOOLS and isinstance(patch, str):
        yield from _patched(patch)
    elif name == "run_command":
        yield from _patched(_patch_in_command(arguments.get("command")))
    elif name in _EDITORS and (keys := _EDITOR_KEYS.get(str(arguments.get("command")))):
        yield from _edit(arguments, "path", *keys)


def _edit(arguments: Mapping[str, Any], path: str, old: str, new: str) -> Iterator[FileChange]:
    before, after = arguments.get(old, ""), arguments.get(new)
    if isinstance(arguments.get(path), str) and isinstance(before, str) and isinstance(after, str):
        yield FileChange(arguments[path], _diff(before, after))


def _edits(arguments: Mapping[str, Any]) -> Iterator[FileChange]:
    edits = arguments.get("edits")
    lines: list[str] = []
    for edit in cast("list[Any]", edits)[:_MAX_CHANGES] if isinstance(edits, list) else ():
        values = cast("dict[str, Any]", edit) if isinstance(edit, dict) else dict[str, Any]()
        before, after = values.get("old_string"), values.get("new_string")
        if isinstance(before, str) and isinstance(after, str):
            lines += (*(["@@"] if lines else []), *_diff(before, after))
    if lines and isinstance(arguments.get("file_path"), str):
        yield FileChange(arguments["file_path"], tuple(lines))


def _diff(before: str, after: str) -> tuple[str, ...]:
    if before and after and before.count("\n") + after.count("\n") < MAX_COMPARED:
        lines = diff_texts(before, after)
        starts_with_gap, ends_with_gap = (lines[index].kind == "gap" for index in (0, -1))
        return tuple(map(_marked, lines[starts_with_gap : len(lines) - ends_with_gap]))
    return (*_marked_lines("-", before), *_marked_lines("+", after))


def _marked(line: DiffLine) -> str:
    mark = {"same": " ", "added": "+", "removed": "-"}.get(line.kind)
    return "@@" if mark is None else mark + line.text.removesuffix("\r")


def _marked_lines(mark: str, text: str) -> Iterator[str]:
    # A final line break begins no line.
    lines = text.removesuffix("\n").split("\n") if text else ()
    return (mark + line.removesuffix("\r") for line in lines)


def _patched(patch: str) -> Iterator[FileChange]:
    """Yield the files of a patch in the format of Codex (codex-rs/apply-patch, "*** Begin Patch")."""
    path, lines = "", list[str]()
    for line in patch.splitlines():
        start = next((mark for mark in _PATCH_FILES if line.startswith(mark)), None)
        if start is not None or line.startswith("*** End Patch"):
            if path:
                yield FileChange(path, tuple(lines))
            path, lines = line[len(start) :].strip() if start is not None else "", []
        elif path and (not line or line[0] in " +-"):
            lines.append(line or " ")
        elif path and line.startswith("@@") and lines:
            lines.append(line)
    if path:
        yield FileChange(path, tuple(lines))


def _patch_in_command(command: object) -> str:
    """Return the patch that a command applies: Codex calls its own tool through the shell too."""
    words = cast("list[object]", command) if isinstance(command, list) else [command]
    texts = [word for word in words if isinstance(word, str)]
    text = next((text for text in reversed(texts) if "*** Begin Patch" in text), "")
    _, mark, patch = text.partition("*** Begin Patch")
    return mark + patch if any("apply_patch" in word for word in texts) else ""
