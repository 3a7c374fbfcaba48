"""Hard denies: what nobody can allow, and what a person must see before it is allowed, each with its reason."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import normpath
from typing import TypeVar

from desktop_agent.permissions.rule_matching import CallFacts
from desktop_agent.permissions.shell.parser import Command, ParsedLine
from desktop_agent.permissions.shell.read_only_commands import is_read_only_command
from desktop_agent.permissions.shell.wrappers import program_name
from desktop_agent.sandbox.startup_files import (
    AskLevel,
    StartupFile,
    comparable_parts,
    find_startup_file,
    startup_files_in_line,
    strictest_entry,
)
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import WORKSPACE_ROOT, CommandSubject, PathSubject
from desktop_agent.types.tool_calls import Effect, ToolClass


@dataclass(frozen=True, slots=True)
class HardDeny:
    """Why a call is never run. Not `is_certain`: it may be such a call; a person must look.

    They must look `applies_to_reads`, which is let through otherwise. `asked_by` are ids, as rules have them, one for
    each of the `sentences`: a rule that was made in answer to all of them allows what it says. Without, none does.
    """

    sentences: tuple[Sentence, ...]
    is_certain: bool = True
    applies_to_reads: bool = False
    asked_by: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why, in English."""
        return " ".join(map(str, self.sentences))


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """Where this program keeps its data, as absolute paths, and the workspace, which may lie in there.

    `private` and `startup` are places in the workspace that a person is asked about first: secrets, and what programs
    run by themselves though its path does not tell. `has_untrusted_content`: content from outside came into the
    conversation, trusted or not.
    """

    own_folders: tuple[str, ...] = ()
    workspace: str | None = None
    private: tuple[str, ...] = ()
    startup: tuple[tuple[str, StartupFile], ...] = ()
    has_untrusted_content: bool = False


NO_PROTECTED_PATHS = ProtectedPaths()

OWN_FILES = "It would write where this program keeps its own data."
KEYS = "It would write where keys and passwords are kept."
EVERYTHING = "It would remove or change everything on this computer, or everything of its user."
DISKS = "It would write to a disk past its file system."
FORK_BOMB = "It would start itself over and over until the computer stands still."
PRIVATE_PATH = "Keys, passwords or what was typed may be kept there."
# As a table, so that those who collect sentences to translate find them.
_DENY_SENTENCES = {
    OWN_FILES: OWN_FILES,
    KEYS: KEYS,
    EVERYTHING: EVERYTHING,
    DISKS: DISKS,
    FORK_BOMB: FORK_BOMB,
}
UNCLEAR = "What this command would do cannot be told for sure."

# As parts of a path, wherever the home folder is; in lower case.
_PROTECTED_FOLDERS: tuple[tuple[tuple[str, ...], str], ...] = (
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
# As written: the home folder is an expansion, and so is everything in a folder.
_WHOLE_TREE = re.compile(
    r"""["']?(?:/|~|\$HOME|\$\{HOME\}|/(?:home|root|Users|usr|etc|var|boot|bin|lib|opt|System|Library))["']?[/*.]*["']?"""
)
_FUNCTION = re.compile(r"(?<![\w:.])([\w:.]{1,64})[ \t]{0,9}\([ \t]{0,9}\)\s{0,9}\{([^}]{0,400})")
_FORMATTERS = re.compile(r"mkfs(?:\..+)?|mke2fs|mkswap|wipefs|blkdiscard|shred|truncate|tee")
_WRITES_LAST_OPERAND = frozenset({"cp", "mv", "install", "ln", "rsync"})
_RECURSIVE_PROGRAMS = frozenset({"rm", "chmod", "chown", "chgrp"})
_WRITES_ONLY_GIT = frozenset({("git", "add"), ("git", "commit"), ("git", "push")})
_WRITERS = (
    _WRITES_LAST_OPERAND
    | _RECURSIVE_PROGRAMS
    | {"tee", "dd", "truncate", "sqlite3", "unlink", "rmdir", "shred", "touch"}
)


def find_hard_deny(facts: CallFacts, protected: ProtectedPaths = NO_PROTECTED_PATHS) -> HardDeny | None:
    """Why nobody can allow this call, or None."""
    if facts.subjects is None:
        return _ask_deny(UNCLEAR) if may_write(facts.tool) else None
    for subject in facts.subjects:
        if (
            isinstance(subject, PathSubject)
            and may_write(facts.tool)
            and (reason := _protected_reason(subject.path, protected))
        ):
            return HardDeny((Sentence(_DENY_SENTENCES[reason]),))
    unclear = _startup_file_deny(startup_files_to_ask_about(facts, protected), protected) or _private_path_deny(
        facts, protected.private
    )
    lines = zip(facts.lines, (each for each in facts.subjects if isinstance(each, CommandSubject)), strict=True)
    for line, subject in lines:
        if (reason := _line_reason(line, subject.line, protected)) is not None:
            return HardDeny((Sentence(_DENY_SENTENCES[reason]),))
        is_read_only = _is_read_only(line, subject, protected.workspace)
        named = None if is_read_only else _startup_file_deny(_startup_files_named_in(line, subject), protected)
        unclear = named or unclear
        if not line.understood or any(_is_unclear(each) for each in line.commands):
            unclear = HardDeny((*(named.sentences if named else ()), Sentence(UNCLEAR)), is_certain=False)
    return unclear


def may_write(tool: AnyTool) -> bool:
    """Whether a call of this tool may change something."""
    return tool.tool_class is ToolClass.MUTATING or bool(tool.effects & {Effect.WRITE, Effect.EXECUTE})


def startup_files_to_ask_about(facts: CallFacts, protected: ProtectedPaths) -> Mapping[str, StartupFile]:
    """Startup files that a call may write and that are asked about now, by their paths as a person reads them."""
    if not may_write(facts.tool):
        return {}
    workspace = _comparable_path(protected.workspace or "")
    places = {_comparable_path(place): entry for place, entry in protected.startup}
    found: dict[str, StartupFile] = {}
    for subject in facts.subjects or ():
        if isinstance(subject, PathSubject):
            parts = _comparable_path(subject.path)
            inside = len(workspace) if parts[: len(workspace)] == workspace else 0
            entry = strictest_entry((_in_places(parts, places), find_startup_file("/".join(parts), inside=inside)))
            if entry is not None and (entry.level is not AskLevel.AFTER_OUTSIDE or protected.has_untrusted_content):
                names = [each for each in subject.path.split("/") if each]
                found["/".join(names[inside:]) if inside else subject.path] = entry
    return found


def _startup_files_named_in(line: ParsedLine, subject: CommandSubject) -> Mapping[str, StartupFile]:
    """Startup files that stand in a line: the confinement lets it write those (see docs/confinement.md).

    As they are written, and as the programs get them: quotes within a name hide nothing.
    """
    words = (word for command in line.commands for word in command.words if word is not None)
    targets = (each.target for each in line.redirections if each.target is not None)
    return startup_files_in_line("\n".join((subject.line, *words, *targets)), subject.folder or WORKSPACE_ROOT)


def _is_read_only(line: ParsedLine, subject: CommandSubject, workspace: str | None) -> bool:
    """Whether it writes no file that it names, or only what git keeps of it."""
    targets = (each.target or each.source for each in line.redirections if each.writes)
    if any(startup_files_in_line(each, subject.folder or WORKSPACE_ROOT) for each in targets):
        return False
    return line.understood and all(
        each.words[:2] in _WRITES_ONLY_GIT or is_read_only_command(each, workspace) for each in line.commands
    )


def _startup_file_deny(found: Mapping[str, StartupFile], protected: ProtectedPaths) -> HardDeny | None:
    sentences = tuple(entry.sentence(file) for file, entry in found.items())
    # Of another workspace the same name is another file.
    asked_by = tuple(f"startup file {protected.workspace or ''} {file}" for file in found)
    return HardDeny(sentences, is_certain=False, asked_by=asked_by) if found else None


def _private_path_deny(facts: CallFacts, private: Sequence[str]) -> HardDeny | None:
    places = dict.fromkeys(map(_comparable_path, private), PRIVATE_PATH)
    paths = (_comparable_path(each.path) for each in facts.subjects or () if isinstance(each, PathSubject))
    hit = any(_in_places(each, places) for each in paths)
    return _ask_deny(PRIVATE_PATH, applies_to_reads=True) if hit else None


_Found = TypeVar("_Found")


def _in_places(path: tuple[str, ...], places: Mapping[tuple[str, ...], _Found]) -> _Found | None:
    """What is known of the outermost of these places that it is, or lies in."""
    every = (places.get(path[:many]) for many in range(1, len(path) + 1)) if places else ()
    return next((each for each in every if each is not None), None)


def _comparable_path(path: str) -> tuple[str, ...]:
    return comparable_parts(normpath(path.replace("\\", "/"))) if path else ()


def _ask_deny(reason: str, *, applies_to_reads: bool = False) -> HardDeny:
    return HardDeny((Sentence(reason),), is_certain=False, applies_to_reads=applies_to_reads)


def _line_reason(line: ParsedLine, text: str, protected: ProtectedPaths) -> str | None:
    if any(_is_fork_bomb(*found.groups()) for found in _FUNCTION.finditer(text)):
        return FORK_BOMB
    for each in line.redirections:
        target = each.target or each.source
        if each.writes and (reason := DISKS if _DISK.match(target) else _protected_reason(target, protected)):
            return reason
    reasons = (_command_reason(each, protected) for each in line.commands)
    return next((reason for reason in reasons if reason is not None), None)


def _is_fork_bomb(name: str, body: str) -> bool:
    """Whether a function sends itself to itself, in the background."""
    itself = re.escape(name)
    return re.search(rf"(?<![\w:.]){itself}\s{{0,9}}\|\s{{0,9}}{itself}\s{{0,9}}&", body) is not None


def _command_reason(command: Command, protected: ProtectedPaths) -> str | None:
    name = program_name(command.words[0] or "")
    operands = tuple(_operands(command))
    if any(_DISK.match(each) for each in _written_to(name, operands)):
        return DISKS
    if _is_recursive(name, command) and any(_is_whole_tree(each) for each in operands):
        return EVERYTHING
    if name in _WRITERS or (name == "sed" and any(each.startswith("-i") for each in command.sources)):
        return next((reason for each in operands if (reason := _protected_reason(each, protected))), None)
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
    return operands[-1:] if name in _WRITES_LAST_OPERAND else ()


def _is_recursive(name: str, command: Command) -> bool:
    """Whether it works on whole folders."""
    if name == "find":
        return "-delete" in command.words
    options = [each for each in command.sources[1:] if each.startswith("-")]
    return name in _RECURSIVE_PROGRAMS and any(
        each.startswith("--rec") or (not each.startswith("--") and "r" in each.lower()) for each in options
    )


def _is_whole_tree(operand: str) -> bool:
    return _WHOLE_TREE.fullmatch(operand) is not None or (operand[:1] == "/" and normpath(operand) in {"/", "//"})


def _is_unclear(command: Command) -> bool:
    """Whether an expansion may stand for a place that nobody may touch; a pattern below a folder may not."""
    if program_name(command.words[0] or "") not in _WRITERS:
        return False
    pairs = zip(command.words[1:], command.sources[1:], strict=True)
    return any(word is None and not re.fullmatch(r"[\w.][\w./*?-]*", source) for word, source in pairs)


def _protected_reason(path: str, protected: ProtectedPaths) -> str | None:
    """Why nobody may write there, or None."""
    parts = _parts(path)
    workspace = _parts(protected.workspace or "")
    for place, reason in (*_PROTECTED_FOLDERS, *((_parts(each), OWN_FILES) for each in protected.own_folders)):
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
