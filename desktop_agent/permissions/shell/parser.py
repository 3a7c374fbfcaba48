"""Parse a shell line, so that rules can look at each command in it.

A line that is not surely understood is marked so: then only this exact line can be allowed. Bash and the plain shell
read some lines differently; such a line is not understood either.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from desktop_agent.data_files import load_table
from desktop_agent.permissions.shell.parse_checks import is_unambiguous
from desktop_agent.permissions.shell.syntax import (
    RECURSED,
    Redirection,
    changes_folder,
    file_redirection,
    is_plain_builtin,
    is_plain_test,
    is_private_variable,
    literal_word,
    node_text,
    sets_variable,
    variables_set_by,
    word_set,
)
from desktop_agent.permissions.shell.wrappers import StartedCommand, StartedScript, UnknownStart, unwrap

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LINE_LENGTH = 20_000
_MAX_SCRIPT_DEPTH = 4
# Of commands that start another: `sudo env nice time x`.
_MAX_WRAPPER_DEPTH = 8
_MAX_STRINGS = 20
_MAX_BRACKETS = 1_500
_MAX_TREE_DEPTH = 100
# Tabs and line ends apart, no control character; and no space that only some programs take for one.
_STRANGE_CHARACTERS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)
# Assignments before a command (`CI=1 npm test`) that do not make it do something else.
_ASSIGNED = re.compile(r"(?P<name>\w+)=(?P<quote>[\"']?)(?P<value>[\w.:@+=,-]*)(?P=quote)")
_FOLDER = re.compile(r"(?P<name>\w+)=(?P<quote>[\"']?)(?P<value>(?:\./)?\w[\w-]*(?:/\w[\w-]*)*/?|\.)(?P=quote)")
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
# Without options, expansions and ways back: `cd ..` is another folder where a link was followed, `cd -` is anywhere.
_LEADING_CD = re.compile(
    r"""[ \t\n]*cd[ \t]+(?:--[ \t]+)?
        (?:(?P<bare>(?!-)[\w./@+,-]+)|(?P<quote>["'])(?P<quoted>(?!-)[\w./@+, -]+)(?P=quote))
        [ \t]*(?:&&|;(?!;)|\n)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command, of at least one word: None where it holds an expansion. `sources` are the words as written.

    `started` are the commands that it starts in turn (`sudo rm x` starts `rm x`), and `own_word_count` is how many of
    its words come before theirs. It `is_transparent` if starting them is all that it does.
    """

    words: tuple[str | None, ...]
    sources: tuple[str, ...]
    started: tuple["Command", ...] = ()
    own_word_count: int = 0
    is_transparent: bool = False


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A parsed shell line; `top_level` are the commands that stand in it, in order, without those that they start.

    Without `understood` it may run more than that. `redirections` are those from and to files. `sets_variables`: it
    changes what later commands find in their environment. `goes_to` is the folder that its first command changes to,
    where all others run; `changes_folder`: some of it, apart from that, runs in another folder.
    """

    top_level: tuple[Command, ...] = ()
    understood: bool = False
    redirections: tuple[Redirection, ...] = ()
    sets_variables: bool = False
    goes_to: str | None = None
    changes_folder: bool = False

    @property
    def commands(self) -> tuple[Command, ...]:
        """All commands, also those that others start."""
        return tuple(_with_all_started(self.top_level))

    @property
    def written_targets(self) -> tuple[str, ...]:
        """The files that redirections write, as the shell gets them if that is known, else as written."""
        return tuple(target.target or target.source for target in self.redirections if target.writes)

    @property
    def is_plain(self) -> bool:
        """Whether the line does nothing but run its commands."""
        return self.understood and not self.redirections and not self.sets_variables


def parse_line(line: str) -> ParsedLine:
    """Parse a line. Raises nothing: what cannot be read is not understood."""
    # A line that is too long is not even cached.
    return _parse(line, 0) if len(line) <= MAX_LINE_LENGTH else ParsedLine()


@lru_cache(maxsize=128)
def _parse(line: str, depth: int) -> ParsedLine:
    # The parser's time grows with the square of unfinished texts, and of brackets, in a line.
    is_slow_to_parse = line.count("<<") > _MAX_STRINGS or sum(map(line.count, "([]")) > _MAX_BRACKETS
    if is_slow_to_parse or depth > _MAX_SCRIPT_DEPTH:
        return ParsedLine()
    source = line.encode("utf-8", "surrogatepass")
    root = _parser().parse(source).root_node
    reader = _LineReader(source, depth)
    reader.read(root)
    # What is nested too deep to be read is not checked either.
    understood = reader.understood and not _STRANGE_CHARACTERS.search(line) and is_unambiguous(root, source)
    goes_to = _first_folder(line, root) if len(reader.commands) > 1 else None
    return ParsedLine(
        tuple(reader.commands),
        understood,
        tuple(reader.redirections),
        reader.sets_variables,
        goes_to,
        reader.folder_changes > (goes_to is not None),
    )


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    # Late: most conversations never match a command.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _LineReader:
    """Collects the commands and redirections of one line."""

    def __init__(self, source: bytes, depth: int) -> None:
        self.commands: list[Command] = []
        self.redirections: list[Redirection] = []
        self.understood = True
        self.sets_variables = False
        self.folder_changes = 0
        self._source = source
        self._depth = depth

    def read(self, node: "Node", level: int = 0) -> None:
        """Read this node and all below it, in order."""
        if level > _MAX_TREE_DEPTH or node.type not in RECURSED:
            self.understood = False
            return
        if node.type in {"command", "test_command", "declaration_command", "unset_command"}:
            self._add(node)
        elif node.type == "file_redirect":
            self._redirect(node)
        if sets_variable(node) and not _is_safe_assignment(node, self._source):
            self.sets_variables = True
        for child in node.named_children:
            self.read(child, level + 1)

    def _add(self, node: "Node") -> None:
        if node.type == "test_command":
            parts = [node.children[0]]
        elif node.type == "command":
            parts = [child for child in node.named_children if child.type not in _NOT_WORDS]
        else:
            parts = [node.children[0], *node.named_children]
        words = tuple(literal_word(part, self._source) for part in parts)
        sources = tuple(node_text(part, self._source) for part in parts)
        if node.type == "test_command":
            # The words do not show what is tested: it counts as anything.
            self.understood = self.understood and is_plain_test(node, self._source)
            self.commands.append(Command((*words, None), (*sources, "…")))
            return
        self.commands.append(
            self._with_started_commands(Command(words, sources), declares=node.type == "declaration_command")
        )

    def _with_started_commands(self, command: Command, level: int = 0, *, declares: bool = False) -> Command:
        if level > _MAX_WRAPPER_DEPTH or command.words[0] is None:
            self.understood = False
            return command
        if not is_plain_builtin(command.words, command.sources, declares=declares):
            self.understood = False
        self.folder_changes += changes_folder(command.words)
        if not all(name is not None and is_private_variable(name) for name in variables_set_by(command.words)):
            self.sets_variables = True
        inner = unwrap(command.words)
        match inner:
            case UnknownStart():
                self.understood = False
                return command
            case StartedScript():
                line = _parse(inner.text, self._depth + 1)
                self.understood = self.understood and line.understood
                self.sets_variables = self.sets_variables or line.sets_variables
                self.folder_changes += line.changes_folder or line.goes_to is not None
                self.redirections.extend(line.redirections)
                started, own_word_count = line.top_level, len(command.words)
            case StartedCommand():
                sources = command.sources[inner.at : inner.at + len(inner.words)]
                sources += ("…",) * (len(inner.words) - len(sources))
                started = (self._with_started_commands(Command(inner.words, sources), level + 1),)
                own_word_count = inner.at
            case None:
                return command
        # With a folder before its name it may be a program of the workspace, which may start anything.
        is_transparent = inner.is_transparent and "/" not in command.words[0]
        return replace(command, started=started, own_word_count=own_word_count, is_transparent=is_transparent)

    def _redirect(self, node: "Node") -> None:
        redirection = file_redirection(node, self._source)
        if redirection is not None:
            self.redirections.append(redirection)


_NOT_WORDS = {"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect", "comment"}


def _with_all_started(commands: tuple[Command, ...]) -> Iterator[Command]:
    for command in commands:
        yield command
        yield from _with_all_started(command.started)


@cache
def _safe_variables() -> dict[str, frozenset[str]]:
    return {name: word_set(value) for name, value in load_table(__name__, "safe_variables.toml").items()}


def _is_safe_assignment(node: "Node", source: bytes) -> bool:
    """Return whether this assignment, before a command or alone, leaves every command what it is."""
    if node.type != "variable_assignment":
        return False
    text = node_text(node, source)
    plain = _ASSIGNED.fullmatch(text)
    if plain is not None and plain["name"] in _safe_variables()["names"]:
        return True
    folder = _FOLDER.fullmatch(text)
    return (
        folder is not None and folder["name"] in _safe_variables()["module_folders"] and _is_before_module(node, source)
    )


def _is_before_module(node: "Node", source: bytes) -> bool:
    command = node.parent
    if command is None or command.type != "command":
        return False
    words = [node_text(child, source) for child in command.named_children if child.type != "variable_assignment"]
    return len(words) > 1 and _PYTHON.fullmatch(words[0]) is not None and words[1] == "-m"


def _first_folder(line: str, root: "Node") -> str | None:
    """Return the folder, as written, in which all the rest of the line runs; None where that cannot be told.

    If going there fails, what stands after `;` runs where the line began: the caller checks that the folder exists.
    """
    match = _LEADING_CD.match(line)
    if match is None or _has_background(root):
        return None
    path = match["bare"] or match["quoted"]
    return None if ".." in path.split("/") else path


def _has_background(root: "Node") -> bool:
    """Return whether a part runs in a shell of its own: in `cd a && b & c` the last command stays behind."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "&":
            return True
        # To the plain shell `&>` also sends the command before it into the background.
        if node.type in {"&>", "&>>"} and node.parent is not None and node.parent.end_byte < root.end_byte:
            return True
        stack += node.children
    return False
