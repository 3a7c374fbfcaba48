"""What a call changes in files, as a diff for people: of our own tools, and of those that other assistants call.

Calls of other programs whose tools are ours under another name have our names by then. The others are Claude Code's
MultiEdit, Codex' and opencode's apply_patch, and Goose's editor; their shapes are those of
`desktop_agent.exchange.readers`.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

_MAX_COMPARED = 200
"""Lines of both sides together; more are shown as removed and added, which takes no comparing."""
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
"""Of each command of such an editor, the arguments with the text before and after; "" for none."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file and the lines of a diff, each with " ", "-" or "+" before it, and "@@" between parts of the file."""

    path: str
    lines: tuple[str, ...]

    @property
    def counts(self) -> tuple[int, int]:
        """How many lines are added, and how many are removed."""
        return sum(line.startswith("+") for line in self.lines), sum(line.startswith("-") for line in self.lines)


def file_changes(name: str, arguments: Mapping[str, Any]) -> tuple[FileChange, ...]:
    """Return what a call with these arguments changes; nothing for a call that changes no file, or another shape."""
    return tuple(_changes(name, arguments))[:_MAX_CHANGES]


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
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > _MAX_COMPARED or not old or not new:
        return (*(f"-{line}" for line in old), *(f"+{line}" for line in new))
    return tuple(_compared(old, new))


def _compared(old: list[str], new: list[str]) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if kind == "equal":
            yield from (f" {line}" for line in old[old_from:old_to])
        else:
            yield from (f"-{line}" for line in old[old_from:old_to])
            yield from (f"+{line}" for line in new[new_from:new_to])


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
    return text[text.index("*** Begin Patch") :] if text and any("apply_patch" in word for word in texts) else ""
