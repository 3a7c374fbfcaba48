"""Paths as models write them: split into components, with everything refused that could mean another place."""

import re
from typing import NoReturn

from desktop_agent.vocabulary.errors import OutsideWorkspace, Sentence

# “Naming Files, Paths, and Namespaces” (Microsoft): reserved with any extension, in any case, superscripts too.
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_MAX_LENGTH = 4096


def reject_path(path: str, why: str) -> NoReturn:
    """Raise OutsideWorkspace about this path; `why` continues a sentence that begins with it."""
    shown = path if len(path) <= 200 else path[:200] + "…"
    shown = "".join(each if each.isprintable() else "�" for each in shown)
    raise OutsideWorkspace(Sentence("“{path}” " + why, {"path": shown}))


def split_path(path: str, *, windows_names: bool) -> tuple[str, ...]:
    """Split at / and \\ alike, without empty parts and ".". Raises OutsideWorkspace.

    `..` stays, but only where it does not climb above the start. `windows_names` adds what Windows gives a meaning:
    device names, colons, trailing dots and spaces.
    """
    _check_text(path)
    parts = tuple(part for part in re.split(r"[/\\]", path) if part not in {"", "."})
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            reject_path(path, "leads out of the workspace folder.")
        if windows_names and part != "..":
            _check_windows_name(path, part)
    return parts


def is_absolute_path(path: str) -> bool:
    """Whether it begins at a root, a drive or a server."""
    return path.startswith(("/", "\\")) or _DRIVE.match(path) is not None


def _check_text(path: str) -> None:
    if len(path) > _MAX_LENGTH:
        reject_path(path, "is too long for a path.")
    if any(ord(each) < 32 or ord(each) == 127 for each in path):
        reject_path(path, "contains a control character.")
    if any(0xD800 <= ord(each) <= 0xDFFF for each in path):
        reject_path(path, "contains half a character.")
    if path.startswith("~"):
        reject_path(path, "begins with ~, which stands for a home folder; write the path inside the workspace.")


def _check_windows_name(path: str, part: str) -> None:
    if _DEVICES.fullmatch(part.rstrip(". ")):
        reject_path(path, "is the name of a device on Windows.")
    if ":" in part:
        reject_path(path, "contains a colon, which names a drive or a hidden stream on Windows.")
    if part != part.rstrip(". "):
        reject_path(path, "ends in a dot or a space, which Windows would drop.")
