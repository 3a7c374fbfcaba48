"""Hard denies and hard asks: what nobody can allow, and what a wide rule cannot allow, each with its reason."""

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
from desktop_agent.types.permissions import WORKSPACE_ROOT, CommandSubject
from desktop_agent.types.tool_calls import Effect, ToolClass


@dataclass(frozen=True, slots=True)
class HardDeny:
    """Why a call is never run."""

    reason: Sentence


@dataclass(frozen=True, slots=True)
class HardAsk:
    """Why a person must decide about a call that rules and mode would allow.

    `applies_to_reads`: also about one that only reads. `asked_by` are ids, as rules have them, one for each of the
    `reasons`: a rule that was made in answer to all of them allows the call; without ids no rule does.
    """

    reasons: tuple[Sentence, ...]
    applies_to_reads: bool = False
    asked_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """Where this program keeps its data, as absolute paths, and the workspace, which may lie in there.

    `private` and `startup` are paths in the workspace that a person is asked about first: secrets, and files that
    programs run by themselves although their path does not show it. `has_untrusted_content`: content from outside came
    into the conversation, trusted or not.
    """

    own_folders: tuple[str, ...] = ()
    workspace: str | None = None
    private: tuple[str, ...] = ()
    startup: tuple[tuple[str, StartupFile], ...] = ()
    has_untrusted_content: bool = False


NO_PROTECTED_PATHS = ProtectedPaths()

OWN_FILES = Sentence("It would write where this program keeps its own data.")
KEYS = Sentence("It would write where keys and passwords are kept.")
EVERYTHING = Sentence("It would remove or change everything on this computer, or everything of its user.")
DISKS = Sentence("It would write directly to a disk, bypassing its file system.")
FORK_BOMB = Sentence("It would start itself again and again until the computer stops responding.")
PRIVATE_PATH = Sentence("Keys, passwords or what was typed may be kept there.")
UNCLEAR = Sentence("It is not certain what this command would do.")

# As parts of a path, wherever the home folder is; in lower case.
_PROTECTED_FOLDERS: tuple[tuple[tuple[str, ...], Sentence], ...] = (
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


def find_hard_verdict(facts: CallFacts, protected: ProtectedPaths = NO_PROTECTED_PATHS) -> HardDeny | HardAsk | None:
    """Return why nobody can allow this call, or why a person must decide about it; None where rules may."""
    if facts.subjects is None:
        return HardAsk((UNCLEAR,)) if may_write(facts.tool) else None
    if may_write(facts.tool) and (reason := _first_protected_reason(facts.paths, protected)) is not None:
        return HardDeny(reason)
    ask = _path_ask(facts, protected)
    for line, subject in facts.lines:
        if (reason := _line_reason(line, subject.line, protected)) is not None:
            return HardDeny(reason)
        ask = _line_ask(line, subject, protected) or ask
    return ask


def may_write(tool: AnyTool) -> bool:
    """Return whether a call of this tool may change something."""
    return tool.tool_class is ToolClass.MUTATING or bool(tool.effects & {Effect.WRITE, Effect.EXECUTE})


def startup_files_to_ask_about(facts: CallFacts, protected: ProtectedPaths) -> Mapping[str, StartupFile]:
    """Return the startup files that a call may write and is asked about, by their paths as people read them."""
    if not may_write(facts.tool):
        return {}
    workspace = _comparable_path(protected.workspace)
    places = {_comparable_path(place): entry for place, entry in protected.startup}
    startup_files: dict[str, StartupFile] = {}
    for path in facts.paths:
        parts = _comparable_path(path)
        workspace_parts = len(workspace) if parts[: len(workspace)] == workspace else 0
        entry = strictest_entry(
            (_in_places(parts, places), find_startup_file("/".join(parts), workspace_parts=workspace_parts))
        )
        if entry is not None and (entry.level is not AskLevel.AFTER_OUTSIDE or protected.has_untrusted_content):
            startup_files[_without_first_parts(path, workspace_parts)] = entry
    return startup_files


def _without_first_parts(path: str, count: int) -> str:
    return "/".join(list(filter(None, path.split("/")))[count:]) if count else path


def _startup_files_named_in(line: ParsedLine, subject: CommandSubject) -> Mapping[str, StartupFile]:
    """Return the startup files named in a line: the sandbox lets it write those (see docs/confinement.md).

    As they are written, and as the programs get them: quotes within a name hide nothing.
    """
    words = (word for command in line.commands for word in command.words if word is not None)
    targets = (redirection.target for redirection in line.redirections if redirection.target is not None)
    return startup_files_in_line("\n".join((subject.line, *words, *targets)), subject.folder or WORKSPACE_ROOT)


def _is_read_only(line: ParsedLine, subject: CommandSubject, workspace: str | None) -> bool:
    """Return whether the line writes no file that it names, or only what git keeps of it."""
    folder = subject.folder or WORKSPACE_ROOT
    if any(startup_files_in_line(target, folder) for target in line.written_targets):
        return False
    return line.understood and all(
        command.words[:2] in _WRITES_ONLY_GIT or is_read_only_command(command, workspace) for command in line.commands
    )


def _line_ask(line: ParsedLine, subject: CommandSubject, protected: ProtectedPaths) -> HardAsk | None:
    is_read_only = _is_read_only(line, subject, protected.workspace)
    startup_ask = None if is_read_only else _startup_file_ask(_startup_files_named_in(line, subject), protected)
    if line.understood and not any(map(_is_unclear, line.commands)):
        return startup_ask
    return HardAsk((*(startup_ask.reasons if startup_ask else ()), UNCLEAR))


def _startup_file_ask(startup_files: Mapping[str, StartupFile], protected: ProtectedPaths) -> HardAsk | None:
    reasons = tuple(entry.sentence(file) for file, entry in startup_files.items())
    # Of another workspace the same name is another file.
    asked_by = tuple(f"startup file {protected.workspace or ''} {file}" for file in startup_files)
    return HardAsk(reasons, asked_by=asked_by) if startup_files else None


def _path_ask(facts: CallFacts, protected: ProtectedPaths) -> HardAsk | None:
    if startup_files := startup_files_to_ask_about(facts, protected):
        return _startup_file_ask(startup_files, protected)
    places = dict.fromkeys(map(_comparable_path, protected.private), True)
    is_private = any(_in_places(_comparable_path(path), places) for path in facts.paths)
    return HardAsk((PRIVATE_PATH,), applies_to_reads=True) if is_private else None


_Entry = TypeVar("_Entry")


def _in_places(path: tuple[str, ...], places: Mapping[tuple[str, ...], _Entry]) -> _Entry | None:
    """Return what is known of the outermost of these paths that contains this one."""
    entries = (places.get(path[:length]) for length in range(1, len(path) + 1)) if places else ()
    return next((entry for entry in entries if entry is not None), None)


def _comparable_path(path: str | None) -> tuple[str, ...]:
    return comparable_parts(normpath(path.replace("\\", "/"))) if path else ()


def _line_reason(line: ParsedLine, text: str, protected: ProtectedPaths) -> Sentence | None:
    if any(_is_fork_bomb(*function.groups()) for function in _FUNCTION.finditer(text)):
        return FORK_BOMB
    for target in line.written_targets:
        if reason := DISKS if _DISK.match(target) else _protected_reason(target, protected):
            return reason
    return next(filter(None, (_command_reason(command, protected) for command in line.commands)), None)


def _is_fork_bomb(name: str, body: str) -> bool:
    """Return whether a function pipes itself into itself, in the background."""
    itself = re.escape(name)
    return re.search(rf"(?<![\w:.]){itself}\s{{0,9}}\|\s{{0,9}}{itself}\s{{0,9}}&", body) is not None


def _command_reason(command: Command, protected: ProtectedPaths) -> Sentence | None:
    name = program_name(command.words[0] or "")
    operands = tuple(_operands(command))
    if any(map(_DISK.match, _written_to(name, operands))):
        return DISKS
    if _is_recursive(name, command) and any(map(_is_whole_tree, operands)):
        return EVERYTHING
    return _first_protected_reason(operands, protected) if _is_writer(name, command) else None


def _operands(command: Command) -> Iterator[str]:
    """Yield the operands of a command: literal if possible, else as written; of `of=x` only x."""
    for word, source in zip(command.words[1:], command.sources[1:], strict=True):
        text = source if word is None else word
        if not text.startswith("-"):
            yield text.partition("=")[2] if text.startswith("of=") else text


def _written_to(name: str, operands: tuple[str, ...]) -> tuple[str, ...]:
    if _FORMATTERS.fullmatch(name):
        return operands
    if name == "dd":
        return tuple(operand for operand in operands if not operand.startswith("if="))
    return operands[-1:] if name in _WRITES_LAST_OPERAND else ()


def _is_writer(name: str, command: Command) -> bool:
    if name == "sed":
        return any(source.startswith("-i") for source in command.sources)
    return name in _WRITERS


def _is_recursive(name: str, command: Command) -> bool:
    if name == "find":
        return "-delete" in command.words
    options = [source for source in command.sources[1:] if source.startswith("-")]
    return name in _RECURSIVE_PROGRAMS and any(
        option.startswith("--rec") or (not option.startswith("--") and "r" in option.lower()) for option in options
    )


def _is_whole_tree(operand: str) -> bool:
    return _WHOLE_TREE.fullmatch(operand) is not None or (operand[:1] == "/" and normpath(operand) in {"/", "//"})


def _is_unclear(command: Command) -> bool:
    """Return whether an expansion may become a protected path; a pattern below a folder may not."""
    if program_name(command.words[0] or "") not in _WRITERS:
        return False
    pairs = zip(command.words[1:], command.sources[1:], strict=True)
    return any(word is None and not re.fullmatch(r"[\w.][\w./*?-]*", source) for word, source in pairs)


def _protected_reason(path: str, protected: ProtectedPaths) -> Sentence | None:
    """Return why nobody may write to this path, or None."""
    parts = _parts(path)
    workspace = _parts(protected.workspace or "")
    for place, reason in (
        *_PROTECTED_FOLDERS,
        *((_parts(own_folder), OWN_FILES) for own_folder in protected.own_folders),
    ):
        for offset in range(len(parts) - len(place) + 1):
            folder = parts[: offset + len(place)]
            # A workspace within a protected folder may be written.
            in_workspace = len(workspace) > len(folder) and parts[: len(workspace)] == workspace
            if folder[offset:] == place and not in_workspace:
                return reason
    return None


def _first_protected_reason(paths: Sequence[str], protected: ProtectedPaths) -> Sentence | None:
    return next(filter(None, (_protected_reason(path, protected) for path in paths)), None)


def _parts(path: str) -> tuple[str, ...]:
    plain = normpath(path.casefold().replace("\\", "/")) if path else ""
    return tuple(part for part in plain.split("/") if part)
