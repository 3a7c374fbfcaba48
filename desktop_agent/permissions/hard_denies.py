"""What nobody can allow: a short list, each with its reason."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import normpath

from desktop_agent.permissions.places.private_places import NO_PRIVATE_PLACES, PrivatePlaces
from desktop_agent.permissions.rule_matching import Case
from desktop_agent.permissions.shell.commands import Command, ParsedLine
from desktop_agent.permissions.shell.wrappers import program_name
from desktop_agent.vocabulary.conduct.rules import CommandSubject, PathSubject
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass


@dataclass(frozen=True, slots=True)
class HardDeny:
    """Why a call is never run. Not `is_certain`: it may be such a call; a person must look.

    They must look `even_at_reading`, which is let through otherwise.
    """

    reason: str
    is_certain: bool = True
    even_at_reading: bool = False


@dataclass(frozen=True, slots=True)
class Grounds:
    """Where this program keeps its data, as absolute paths, and the workspace, which may lie in there.

    `private` are the places in the workspace that a person is asked about first.
    """

    own_folders: tuple[str, ...] = ()
    workspace: str | None = None
    private: PrivatePlaces = NO_PRIVATE_PLACES


ANYWHERE = Grounds()

OWN_FILES = "It would write where this program keeps its own data."
KEYS = "It would write where keys and passwords are kept."
EVERYTHING = "It would remove or change everything on this computer, or everything of its user."
DISKS = "It would write to a disk past its file system."
FORK_BOMB = "It would start itself over and over until the computer stands still."
RUN_BY_GIT = "It would write where Git keeps what it runs: the next command of Git may start what is written there."
KEPT_HERE = "Keys, passwords or what was typed may be kept there."
STEERS = "What is written there says which programs your own programs start, outside of all confinement."
UNCLEAR = "What this command would do cannot be told for sure."

# As parts of a path, wherever the home folder is; in lower case.
_KEPT: tuple[tuple[tuple[str, ...], str], ...] = (
    ((".local", "share", "keyrings"), KEYS),
    ((".local", "share", "kwalletd"), KEYS),
    (("library", "keychains"), KEYS),
    (("appdata", "roaming", "microsoft", "credentials"), KEYS),
    (("appdata", "local", "microsoft", "credentials"), KEYS),
    ((".local", "share", "desktop-agent"), OWN_FILES),
    (("library", "application support", "desktop-agent"), OWN_FILES),
    (("appdata", "local", "desktop-agent"), OWN_FILES),
)
_DISK = re.compile(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|dm-|md|mapper/|mem$|kmem$)")
# Case, dots at the end and characters that some disks drop do not make it another folder there.
_GIT_FOLDER = re.compile(r"(?:\.git|git~1)[ .]*", re.IGNORECASE)
_DROPPED = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
# As written: the home folder is an expansion, and so is everything in a folder.
_WHOLE = re.compile(
    r"""["']?(?:/|~|\$HOME|\$\{HOME\}|/(?:home|root|Users|usr|etc|var|boot|bin|lib|opt|System|Library))["']?[/*.]*["']?"""
)
_FUNCTION = re.compile(r"(?<![\w:.])([\w:.]{1,64})[ \t]{0,9}\([ \t]{0,9}\)\s{0,9}\{([^}]{0,400})")
_FORMATTERS = re.compile(r"mkfs(?:\..+)?|mke2fs|mkswap|wipefs|blkdiscard|shred|truncate|tee")
_TO_THE_LAST = frozenset({"cp", "mv", "install", "ln", "rsync"})
_OF_FOLDERS = frozenset({"rm", "chmod", "chown", "chgrp"})
_WRITERS = _TO_THE_LAST | _OF_FOLDERS | {"tee", "dd", "truncate", "sqlite3", "unlink", "rmdir", "shred", "touch"}


def hard_deny(case: Case, grounds: Grounds = ANYWHERE) -> HardDeny | None:
    """Why nobody can allow this call, or None."""
    may_write = case.tool.tool_class is ToolClass.MUTATING or bool(case.tool.effects & {Effect.WRITE, Effect.EXECUTE})
    if case.subjects is None:
        return HardDeny(UNCLEAR, is_certain=False) if may_write else None
    for subject in case.subjects:
        if isinstance(subject, PathSubject) and may_write and (reason := _kept(subject.path, grounds)):
            return HardDeny(reason)
    unclear = HardDeny(RUN_BY_GIT, is_certain=False) if may_write and _is_of_git(case) else None
    unclear = unclear or _is_private(case, grounds.private, may_write=may_write)
    lines = zip(case.lines, (each for each in case.subjects if isinstance(each, CommandSubject)), strict=True)
    for line, subject in lines:
        if (reason := _line_reason(line, subject.line, grounds)) is not None:
            return HardDeny(reason)
        if not line.understood or any(_is_unclear(each) for each in line.commands):
            unclear = HardDeny(UNCLEAR, is_certain=False)
    return unclear


def _is_of_git(case: Case) -> bool:
    paths = (each.path for each in case.subjects or () if isinstance(each, PathSubject))
    return any(_GIT_FOLDER.fullmatch(part) for path in paths for part in _DROPPED.sub("", path).split("/"))


def _is_private(case: Case, private: PrivatePlaces, *, may_write: bool) -> HardDeny | None:
    paths = [_parts(_DROPPED.sub("", each.path)) for each in case.subjects or () if isinstance(each, PathSubject)]
    if _are_in(paths, private.hidden):
        return HardDeny(KEPT_HERE, is_certain=False, even_at_reading=True)
    return HardDeny(STEERS, is_certain=False) if may_write and _are_in(paths, private.steering) else None


def _are_in(paths: Sequence[tuple[str, ...]], places: Sequence[str]) -> bool:
    """Whether one of them is, or lies in, one of these places."""
    if not paths:
        return False
    known = {_parts(each) for each in places}
    return any(path[:many] in known for path in paths for many in range(1, len(path) + 1))


def _line_reason(line: ParsedLine, text: str, grounds: Grounds) -> str | None:
    if any(_starts_itself(*found.groups()) for found in _FUNCTION.finditer(text)):
        return FORK_BOMB
    for each in line.redirections:
        target = each.target or each.source
        if each.writes and (reason := DISKS if _DISK.match(target) else _kept(target, grounds)):
            return reason
    reasons = (_command_reason(each, grounds) for each in line.commands)
    return next((reason for reason in reasons if reason is not None), None)


def _starts_itself(name: str, body: str) -> bool:
    """Whether a function sends itself to itself, in the background."""
    itself = re.escape(name)
    return re.search(rf"(?<![\w:.]){itself}\s{{0,9}}\|\s{{0,9}}{itself}\s{{0,9}}&", body) is not None


def _command_reason(command: Command, grounds: Grounds) -> str | None:
    name = program_name(command.words[0] or "")
    operands = tuple(_operands(command))
    if any(_DISK.match(each) for each in _written_to(name, operands)):
        return DISKS
    if _goes_down(name, command) and any(_is_whole(each) for each in operands):
        return EVERYTHING
    if name in _WRITERS or (name == "sed" and any(each.startswith("-i") for each in command.sources)):
        return next((reason for each in operands if (reason := _kept(each, grounds))), None)
    return None


def _operands(command: Command) -> Iterator[str]:
    """What it works on: literal where it can be, else as written; of `of=x` only x."""
    for word, source in zip(command.words[1:], command.sources[1:], strict=True):
        text = source if word is None else word
        if not text.startswith("-"):
            yield text.partition("=")[2] if text.startswith("of=") else text


def _written_to(name: str, operands: tuple[str, ...]) -> tuple[str, ...]:
    if _FORMATTERS.fullmatch(name):
        return operands
    if name == "dd":
        return tuple(each for each in operands if not each.startswith("if="))
    return operands[-1:] if name in _TO_THE_LAST else ()


def _goes_down(name: str, command: Command) -> bool:
    """Whether it works on whole folders."""
    if name == "find":
        return "-delete" in command.words
    options = [each for each in command.sources[1:] if each.startswith("-")]
    return name in _OF_FOLDERS and any(
        each.startswith("--rec") or (not each.startswith("--") and "r" in each.lower()) for each in options
    )


def _is_whole(operand: str) -> bool:
    return _WHOLE.fullmatch(operand) is not None or (operand[:1] == "/" and normpath(operand) in {"/", "//"})


def _is_unclear(command: Command) -> bool:
    """Whether an expansion may stand for a place that nobody may touch; a pattern below a folder may not."""
    if program_name(command.words[0] or "") not in _WRITERS:
        return False
    pairs = zip(command.words[1:], command.sources[1:], strict=True)
    return any(word is None and not re.fullmatch(r"[\w.][\w./*?-]*", source) for word, source in pairs)


def _kept(path: str, grounds: Grounds) -> str | None:
    """Why nobody may write there, or None."""
    parts = _parts(path)
    workspace = _parts(grounds.workspace or "")
    for place, reason in (*_KEPT, *((_parts(each), OWN_FILES) for each in grounds.own_folders)):
        for at in range(len(parts) - len(place) + 1):
            folder = parts[: at + len(place)]
            # A workspace in there was made to be worked in.
            in_workspace = len(workspace) > len(folder) and parts[: len(workspace)] == workspace
            if folder[at:] == place and not in_workspace:
                return reason
    return None


def _parts(path: str) -> tuple[str, ...]:
    plain = normpath(path.casefold().replace("\\", "/")) if path else ""
    return tuple(part for part in plain.split("/") if part)
