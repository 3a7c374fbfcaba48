"""Whether a shell line is read-only: no command in it writes, starts something else, or reads outside of the workspace.

What is read-only runs without a question, with the workspace read-only and without the network. So a program that is
missing here costs a question, and one that should not be here can still change nothing.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from desktop_agent.permissions.shell.commands import Command, parse_line
from desktop_agent.permissions.shell.nodes import word_set
from desktop_agent.permissions.shell.reaching_options import has_escalating_words, known_name, subcommand
from desktop_agent.permissions.shell.read_only_scripts import awk_only_prints, python_only_prints, sed_only_prints
from desktop_agent.permissions.shell.wrappers import SHELLS, program_name
from desktop_agent.vocabulary.conduct.rules import CommandSubject

# They start what stands in their words, and add words that they read to it.
_COMMAND_STARTERS = frozenset({"find", "xargs"}) | SHELLS
_SCRIPTS = {
    "sed": sed_only_prints,
    **dict.fromkeys(("awk", "gawk", "mawk"), awk_only_prints),
    **dict.fromkeys(("python", "python3"), python_only_prints),
}
# Software of the system, in which there is nothing of a person's.
_SYSTEM_FOLDERS = word_set("usr bin sbin lib lib32 lib64 opt nix")
_DEVICES = re.compile(r"/dev/(?:null|stdin|stdout|stderr|fd/\d+)")
_PARENT_FOLDER = re.compile(r"(?:^|[/=:,{\s]|^-\w{1,8})\.\.(?:[/,}\s]|$)")
_HOME = re.compile(r"(?:^|[=:,{\s])~")
# Right behind an option a slash alone parts fields: `cut -d/`.
_ABSOLUTE = re.compile(r"(?:^|[=:,{\s]|^-\w{1,8}(?=/.))(/[^=:,{}\s]*)")
# What an expansion may be: a variable of the line's own, the result of a command of the line, or the workspace.
_STRANGE_EXPANSION = re.compile(r"\$(?!\(|PWD\b|[a-z_][a-z0-9_]*|\{[a-z_][a-z0-9_]*\}|\{#?[a-z_][a-z0-9_]*[#%]|[?#!])")
_LISTS = re.compile(r"\b(?:for|select|case)\b")
# Long options may be shortened.
_HAS_TEXT = re.compile(r"-[a-zA-Z]*[efL]|--(?:reg|fi|fr|exp|lib)")
_NO_OPTION = re.compile(r"[\w./]")
_QUOTES = re.compile(r"[\"'\\]")
# Around names in a program that is a word.
_SIGNS = re.compile(r"[\"'(){}\[\]<>]")


@dataclass(frozen=True, slots=True)
class _Table:
    any_options: frozenset[str]
    options_of_rules: frozenset[str]
    alone: frozenset[str]
    tell_version: frozenset[str]
    short_version: frozenset[str]
    text_first: frozenset[str]
    subcommands: frozenset[tuple[str, ...]]
    only_with: dict[tuple[str, ...], frozenset[str]]
    never_with: dict[tuple[str, ...], frozenset[str]]
    without_operands: frozenset[tuple[str, ...]]


@cache
def _table() -> _Table:
    data: dict[str, Any] = tomllib.loads(
        files(__package__ or __name__).joinpath("read_only_commands.toml").read_text(encoding="utf-8")
    )

    def pairs(name: str) -> frozenset[tuple[str, ...]]:
        return frozenset((*first.split(), last) for first, names in data[name].items() for last in names.split())

    def words(name: str) -> dict[tuple[str, ...], frozenset[str]]:
        return {tuple(key.split()): word_set(value) for key, value in data[name].items()}

    return _Table(
        any_options=word_set(data["any_options"]),
        options_of_rules=word_set(data["options_of_rules"]),
        alone=word_set(data["alone"]),
        tell_version=word_set(data["tell_version"]),
        short_version=frozenset(data["short_version"]),
        text_first=word_set(data["text_first"]),
        subcommands=pairs("subcommands"),
        only_with=words("only_with"),
        never_with=words("never_with"),
        without_operands=pairs("without_operands"),
    )


def is_read_only_line(subject: CommandSubject, workspace: str | None) -> bool:
    """Whether every command of the line is read-only, and names nothing outside of the workspace but system software.

    What a program makes up by itself, the confinement has to hold. False also where the line would not run confined and
    without the network: then it may reach what it should not.
    """
    line = parse_line(subject.line)
    if not subject.is_sandboxed or not line.understood or not line.written or line.sets_variables:
        return False
    if any(each.writes or leaves_workspace(each.source, workspace) for each in line.redirections):
        return False
    if loop_leaves_workspace(subject.line, workspace):
        return False
    return all(is_read_only_command(each, workspace) for each in line.written)


def loop_leaves_workspace(line: str, workspace: str | None) -> bool:
    """Whether a loop may go through something outside of the workspace: its list stands in no command."""
    return _LISTS.search(line) is not None and leaves_workspace(_QUOTES.sub("", line), workspace)


def is_read_only_command(command: Command, workspace: str | None) -> bool:
    """Whether a command, and all that it starts, is read-only."""
    name = command.words[0] or ""
    # With a folder before its name it may be a program of the workspace.
    if name != program_name(name):
        return False
    if command.starts:
        inside = stays_in_workspace(command, workspace) and _starts_read_only(command)
        return inside and all(is_read_only_command(each, workspace) for each in command.starts)
    return stays_in_workspace(command, workspace) and _has_read_only_options(command, name)


def _has_read_only_options(command: Command, name: str) -> bool:
    table, behind = _table(), command.words[1:]
    if name in table.any_options:
        # By itself it goes to the home folder.
        return name != "cd" or bool(behind)
    if len(behind) == 1 and _tells_version(table, name, behind[0]):
        return True
    if name in _SCRIPTS:
        # What an expansion becomes may be an option, and with that another program.
        pairs = zip(behind, command.sources[1:], strict=True)
        return all(word is not None or _NO_OPTION.match(source) for word, source in pairs) and _SCRIPTS[name](behind)
    if name in table.options_of_rules:
        return not has_escalating_words(command.words, command.sources, 1)
    return _is_read_only_subcommand(_without_pager_option(command)) if behind else name in table.alone


def is_read_only_anywhere(command: Command, workspace: str | None) -> bool:
    """Whether a command is read-only, whatever the workspace holds: also where the line that it stands in may write.

    Stricter than `is_read_only_command`, which relies on the line being held to reading.
    """
    if command.starts:
        return is_read_only_command(command, workspace) and all(
            is_read_only_anywhere(each, workspace) for each in command.starts
        )
    table, name = _table(), command.words[0] or ""
    # Plugins that a line writes are programs of its own.
    plain = (table.any_options | table.options_of_rules | {"git"}) - {"mypy"}
    return name in plain and is_read_only_command(command, workspace)


def _tells_version(table: _Table, name: str, word: str | None) -> bool:
    return (word == "--version" and name in table.tell_version) or f"{name} {word}" in table.short_version


def leaves_workspace(word: str, workspace: str | None) -> bool:
    """Whether a word may name something outside of the workspace that is not the system's own software."""
    if workspace:
        word = re.sub(rf"{re.escape(workspace)}(?=/|$|\s)", ".", word)
    if _PARENT_FOLDER.search(word) or _HOME.search(word):
        return True
    for found in _ABSOLUTE.finditer(word):
        path = re.sub(r"/(?:\.?/)+", "/", found[1])
        if path.split("/")[1] not in _SYSTEM_FOLDERS and not _DEVICES.fullmatch(path):
            return True
    return False


def _starts_read_only(command: Command) -> bool:
    name = program_name(command.words[0] or "")
    own = command.words[1 : command.starts_at]
    # An assignment changes what is started.
    if any("=" in (each or "=") for each in own if not (each or "").startswith("-")):
        return False
    if name == "find":
        return not has_escalating_words(command.words, command.sources, 1)
    return name in _COMMAND_STARTERS or command.is_transparent


def stays_in_workspace(command: Command, workspace: str | None) -> bool:
    """Whether none of a command's own words may name something outside of the workspace but system software."""
    if command.starts:
        own = (each or "$" for each in command.words[1 : command.starts_at])
        return not any(leaves_workspace(each, workspace) for each in own)
    name = program_name(command.words[0] or "")
    # Where an option has the text, the first word is a file.
    has_text = any(_HAS_TEXT.match(source) for source in command.sources[1:])
    is_text = name in _table().text_first and not has_text
    for word, source in zip(command.words[1:], command.sources[1:], strict=True):
        if word is None and ("$'" in source or _STRANGE_EXPANSION.search(source)):
            return False
        if is_text and not source.startswith("-"):
            is_text = False
            continue
        if leaves_workspace(_QUOTES.sub("", source) if word is None else _SIGNS.sub(" ", word), workspace):
            return False
    return True


def _without_pager_option(command: Command) -> Command:
    if command.words[:2] != ("git", "--no-pager"):
        return command
    return Command((command.words[0], *command.words[2:]), (command.sources[0], *command.sources[2:]))


def _is_read_only_subcommand(command: Command) -> bool:
    said = subcommand(command.words)
    if not said:
        return False
    table, key = _table(), (known_name(command.words[0] or ""), *said)
    if key not in table.subcommands or has_escalating_words(command.words, command.sources, len(key)):
        return False
    behind = command.words[len(key) :]
    if key in table.without_operands and any(not (each or "x").startswith("-") for each in behind):
        return False
    options = behind[: behind.index("--")] if "--" in behind else behind
    needed, refused = table.only_with.get(key), table.never_with.get(key, frozenset())
    return (needed is None or not needed.isdisjoint(options)) and refused.isdisjoint(options)
