"""What a rule is about, from what a person writes, and back."""

import os
import re
import shlex
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.conduct.rules import CommandPattern, HostPattern, PathPattern, Pattern

PatternKind = Literal["any", "path", "host", "begins", "exact"]
PATTERN_KINDS: tuple[PatternKind, ...] = ("any", "path", "host", "begins", "exact")
_DRIVE = re.compile(r"[A-Za-z]:")
_HOST = re.compile(r"(\*\.)?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?|[0-9a-f:]*:[0-9a-f:]+")


def pattern_kind_name(kind: PatternKind) -> str:
    """What a person chooses from."""
    words = {
        "any": QCoreApplication.translate("Modes", "With any arguments"),
        "path": QCoreApplication.translate("Modes", "With files in the folder"),
        "host": QCoreApplication.translate("Modes", "With the host"),
        "begins": QCoreApplication.translate("Modes", "Commands that begin with"),
        "exact": QCoreApplication.translate("Modes", "Exactly the command"),
    }
    return words[kind]


def pattern_example(kind: PatternKind) -> str:
    """What stands in the empty field."""
    examples = {"path": str(Path.home()), "host": "*.example.org", "begins": "git status", "exact": "make test"}
    return examples.get(kind, "")


def format_pattern(pattern: Pattern | None) -> tuple[PatternKind, str] | None:
    """As a person would write it; None for what is not written here."""
    match pattern:
        case None:
            return "any", ""
        case PathPattern(prefix=prefix):
            return "path", prefix
        case HostPattern(host=host):
            return "host", host
        case CommandPattern(words=words, exact=exact):
            return "exact" if exact else "begins", shlex.join(words)
        case _:
            return None


def parse_pattern(kind: PatternKind, text: str) -> Pattern | str | None:
    """The pattern; None for any arguments; a string says what is wrong with what was written."""
    text = text.strip()
    match kind:
        case "any":
            return None
        case "path":
            return _parse_path(text)
        case "host":
            return _parse_host(text)
        case "begins" | "exact":
            return _parse_command(text, exact=kind == "exact")


def resolve_links(pattern: Pattern | None) -> Pattern | None:
    """As calls name things: links followed, so that a rule about a link is about what it leads to."""
    if not isinstance(pattern, PathPattern):
        return pattern
    return PathPattern(prefix=os.path.realpath(pattern.prefix).replace("\\", "/"))


def _parse_path(text: str) -> PathPattern | str:
    path = os.path.expanduser(text).replace("\\", "/")  # noqa: PTH111 - a text, with the slashes of any system
    if not path.startswith("/") and not _DRIVE.match(path):
        return QCoreApplication.translate("Modes", "Write the whole path of the folder, from the disk on.")
    return PathPattern(prefix=os.path.normpath(path).replace("\\", "/"))


def _parse_host(text: str) -> HostPattern | str:
    host = (urlsplit(text).hostname or "") if "://" in text else text.lower()
    try:
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        host = ""
    if not _HOST.fullmatch(host):
        return QCoreApplication.translate(
            "Modes", "Write the name of a host, such as example.org, or *.example.org for every host below it."
        )
    return HostPattern(host=host)


def _parse_command(text: str, *, exact: bool) -> CommandPattern | str:
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        return QCoreApplication.translate("Modes", "A quotation mark has no end. Close it.")
    if not words or not words[0]:
        return QCoreApplication.translate("Modes", "Write the first words of the command, such as git status.")
    return CommandPattern(words=words, exact=exact)
