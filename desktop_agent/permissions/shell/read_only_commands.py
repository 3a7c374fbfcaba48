"""Decide whether a shell line is read-only: nothing in it writes, starts something else, or reads outside of the
workspace.

A read-only line runs without a question, with the workspace read-only and without the network. So a program that is
missing here costs a question, and one that should not be here can still change nothing. Scripts of sed, awk and Python
count only if they surely do no more than print.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from desktop_agent.data_files import load_table
from desktop_agent.permissions.shell.escalating_options import has_escalating_words, known_name, subcommand
from desktop_agent.permissions.shell.parser import Command, parse_line
from desktop_agent.permissions.shell.syntax import word_set
from desktop_agent.permissions.shell.wrappers import SHELLS, program_name
from desktop_agent.types.permissions import CommandSubject

Words = Sequence[str | None]

# Longer programs are asked about: nobody reads so much to look at something.
_MAX_SCRIPT_LENGTH = 1000
_SED_ADDRESS = re.compile(r"\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)+/I?")
_SED_RANGE_END = re.compile(r"[+~]\d+")
# All but those that read, write or start something (e, r, R, w, W), and those with labels (sed, "Commands").
_SED_PLAIN = frozenset("pPdDnNgGhHxlq=")
_SED_SIGNS = frozenset("/#|,@!:;%")
# No e (starts what was made) and no w (writes a file).
_SED_REPLACE_FLAGS = re.compile(r"[gpiI\d]*")
_SED_END = re.compile(r"[ \t]*(?:[;\n]\s*|$)")
_BLANKS = re.compile(r"\s*")
_SED_FLAGS = re.compile(r"-[nErsuz]+|--quiet|--silent|--regexp-extended|--null-data|--separate|--posix")
_SED_SCRIPT = re.compile(r"-[nErsuz]*e|--expression")
_AWK_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_AWK_VALUED = re.compile(r"-[Fv]|--field-separator|--assign")
# What starts, reads or loads a program, anywhere, also in a text.
_AWK_STARTS = re.compile(r"system|getline|close|@|\||#|\\\n")

# All that a program of Python may be made of: it reads files, takes JSON apart and prints.
_PYTHON_NODES = (
    *(ast.Module, ast.Expr, ast.Assign, ast.Import, ast.alias, ast.Call, ast.keyword, ast.Name, ast.Attribute),
    *(ast.Constant, ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.BinOp, ast.UnaryOp),
    *(ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.ListComp, ast.SetComp, ast.DictComp),
    *(ast.GeneratorExp, ast.comprehension, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
_PYTHON_FUNCTIONS = word_set(
    "print open len sorted sum min max list dict set tuple str int float bool enumerate range repr any all round zip "
    "abs reversed"
)
_PYTHON_METHODS = word_set(
    "load loads dumps read readlines keys values items get split strip rstrip lstrip splitlines count join startswith "
    "endswith lower upper replace index find"
)


def sed_only_prints(words: Words) -> bool:
    """Return whether `sed` with these arguments only prints what it reads."""
    scripts: list[str | None] = []
    operands: list[str | None] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word is None or not word.startswith("-") or word == "-":
            operands.append(word)
        elif _SED_SCRIPT.fullmatch(word):
            scripts.append(words[index] if index < len(words) else None)
            index += 1
        elif not _SED_FLAGS.fullmatch(word):
            return False
    if not scripts:
        scripts = operands[:1]
    return bool(scripts) and all(script is not None and _sed_program_only_prints(script) for script in scripts)


def _sed_program_only_prints(program: str) -> bool:
    """Read one command after the other, each in one step, so that the time is linear in the length."""
    offset = _skip(_BLANKS, program, 0)
    if len(program) > _MAX_SCRIPT_LENGTH or offset == len(program):
        return False
    while offset < len(program):
        end = _end_of_sed_command(program, _end_of_sed_addresses(program, offset))
        command_end = None if end is None else _SED_END.match(program, end)
        if command_end is None:
            return False
        offset = command_end.end()
    return True


def _skip(pattern: re.Pattern[str], text: str, offset: int) -> int:
    match = pattern.match(text, offset)
    return offset if match is None else match.end()


def _end_of_sed_addresses(program: str, offset: int) -> int:
    after = _skip(_SED_ADDRESS, program, offset)
    if after > offset:
        comma = _skip(_BLANKS, program, after)
        if program[comma : comma + 1] == ",":
            second = _skip(_BLANKS, program, comma + 1)
            end = max(_skip(_SED_ADDRESS, program, second), _skip(_SED_RANGE_END, program, second))
            after = end if end > second else after
    offset = _skip(_BLANKS, program, after)
    return _skip(_BLANKS, program, offset + 1) if program[offset : offset + 1] == "!" else offset


def _end_of_sed_command(program: str, offset: int) -> int | None:
    name, delimiter = program[offset : offset + 1], program[offset + 1 : offset + 2]
    if name and name in _SED_PLAIN:
        return offset + 1
    if name != "s" or delimiter not in _SED_SIGNS or not delimiter:
        return None
    offset += 2
    for _ in range(2):
        while offset < len(program) and program[offset] != delimiter:
            if program[offset] == "\n":
                return None
            offset += 2 if program[offset] == "\\" else 1
        if offset >= len(program):
            return None
        offset += 1
    return _skip(_SED_REPLACE_FLAGS, program, offset)


def awk_only_prints(words: Words) -> bool:
    """Return whether `awk` with these arguments only prints what it computes from what it reads."""
    index = 0
    while index < len(words):
        word = words[index]
        if word is None:
            return False
        if not word.startswith("-") or word == "-":
            return _awk_program_only_prints(word)
        if _AWK_VALUED.fullmatch(word):
            index += 1
        elif not word.startswith(("-F", "-v")):
            return False
        index += 1
    return False


def _awk_program_only_prints(program: str) -> bool:
    if len(program) > _MAX_SCRIPT_LENGTH:
        return False
    bare = _AWK_TEXT.sub('""', program)
    if '"' in bare.replace('""', "") or _AWK_STARTS.search(program.replace("||", "")):
        return False
    if "/" in program and ">" in program:
        # Within a pattern a bracket is a sign like any other.
        return False
    braces = brackets = 0
    for index, char in enumerate(bare):
        braces += (char == "{") - (char == "}")
        brackets += (char == "(") - (char == ")")
        # Within an action and outside of brackets `>` writes to a file.
        if char == ">" and braces and not brackets and bare[index + 1 : index + 2] != "=":
            return False
    return True


def python_only_prints(words: Words) -> bool:
    """Return whether `python` with these arguments only prints what it computes from what it reads."""
    arguments = words[1:] if words[:1] == ("-I",) else words
    program = arguments[1] if len(arguments) == 2 and arguments[0] == "-c" else None
    if program is None or len(program) > _MAX_SCRIPT_LENGTH or "__" in program:
        return False
    try:
        return all(map(_python_only_prints, ast.walk(ast.parse(program))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _python_only_prints(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return all(part.name == "json" and part.asname is None for part in names)
        case ast.Attribute(attr=name):
            return name in _PYTHON_METHODS
        case ast.Name(id=name, ctx=ast.Store()):
            # A name that is assigned must not replace an allowed function.
            return name not in _PYTHON_FUNCTIONS
        case ast.Call(func=ast.Name(id="open"), args=arguments, keywords=keywords):
            modes = [*arguments[1:2], *(part.value for part in keywords if part.arg != "encoding")]
            reads = all(isinstance(mode, ast.Constant) and mode.value in {"r", "rb", "rt"} for mode in modes)
            return reads and len(arguments) in {1, 2} and all(part.arg in {"mode", "encoding"} for part in keywords)
        case ast.Call(func=ast.Name(id=name)):
            return name in _PYTHON_FUNCTIONS
        case ast.Call(func=ast.Attribute()):
            return True
        case ast.Call():
            return False
        case _:
            return isinstance(node, _PYTHON_NODES)


# They start what their words name, and add words that they read.
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
# Signs around names in a program that is one word of the line.
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
    data = load_table(__name__, "read_only_commands.toml")

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
    """Return whether every command of the line is read-only, and names nothing outside but system software.

    What a program does of its own accord, the sandbox has to restrict. False also where the line would run without a
    sandbox or with the network: then it may reach what it should not.
    """
    line = parse_line(subject.line)
    if not subject.is_sandboxed or not line.understood or not line.top_level or line.sets_variables:
        return False
    if any(redirection.writes or leaves_workspace(redirection.source, workspace) for redirection in line.redirections):
        return False
    if loop_leaves_workspace(subject.line, workspace):
        return False
    return all(is_read_only_command(command, workspace) for command in line.top_level)


def loop_leaves_workspace(line: str, workspace: str | None) -> bool:
    """Return whether a loop may go through something outside of the workspace: its list stands in no command."""
    return _LISTS.search(line) is not None and leaves_workspace(_QUOTES.sub("", line), workspace)


def is_read_only_command(command: Command, workspace: str | None) -> bool:
    """Return whether a command, and all that it starts, is read-only."""
    name = command.words[0] or ""
    # With a folder before its name it may be a program of the workspace.
    if name != program_name(name):
        return False
    if command.started:
        is_inside = stays_in_workspace(command, workspace) and _starts_read_only(command)
        return is_inside and all(is_read_only_command(start, workspace) for start in command.started)
    return stays_in_workspace(command, workspace) and _has_read_only_options(command, name)


def _has_read_only_options(command: Command, name: str) -> bool:
    table, arguments = _table(), command.words[1:]
    if name in table.any_options:
        # `cd` by itself goes to the home folder.
        return name != "cd" or bool(arguments)
    if len(arguments) == 1 and _prints_version(table, name, arguments[0]):
        return True
    if name in _SCRIPTS:
        # What an expansion becomes may be an option, and with that another program.
        pairs = zip(arguments, command.sources[1:], strict=True)
        return all(word is not None or _NO_OPTION.match(source) for word, source in pairs) and _SCRIPTS[name](arguments)
    if name in table.options_of_rules:
        return not has_escalating_words(command.words, command.sources, 1)
    return _is_read_only_subcommand(_without_pager_option(command)) if arguments else name in table.alone


def is_read_only_anywhere(command: Command, workspace: str | None) -> bool:
    """Return whether a command is read-only whatever the workspace holds, also in a line that may write.

    Stricter than `is_read_only_command`, which relies on the line being restricted to reading.
    """
    if command.started:
        return is_read_only_command(command, workspace) and all(
            is_read_only_anywhere(start, workspace) for start in command.started
        )
    table, name = _table(), command.words[0] or ""
    # Plugins that a line writes are programs of its own.
    plain = (table.any_options | table.options_of_rules | {"git"}) - {"mypy"}
    return name in plain and is_read_only_command(command, workspace)


def _prints_version(table: _Table, name: str, word: str | None) -> bool:
    return (word == "--version" and name in table.tell_version) or f"{name} {word}" in table.short_version


def leaves_workspace(word: str, workspace: str | None) -> bool:
    """Return whether a word may name something outside of the workspace that is not system software."""
    if workspace:
        word = re.sub(rf"{re.escape(workspace)}(?=/|$|\s)", ".", word)
    if _PARENT_FOLDER.search(word) or _HOME.search(word):
        return True
    for match in _ABSOLUTE.finditer(word):
        path = re.sub(r"/(?:\.?/)+", "/", match[1])
        if path.split("/")[1] not in _SYSTEM_FOLDERS and not _DEVICES.fullmatch(path):
            return True
    return False


def _starts_read_only(command: Command) -> bool:
    name = program_name(command.words[0] or "")
    own_words = command.words[1 : command.own_word_count]
    # An assignment changes what is started.
    if any("=" in (word or "=") for word in own_words if not (word or "").startswith("-")):
        return False
    if name == "find":
        return not has_escalating_words(command.words, command.sources, 1)
    return name in _COMMAND_STARTERS or command.is_transparent


def stays_in_workspace(command: Command, workspace: str | None) -> bool:
    """Return whether none of a command's own words may name something outside of the workspace but system software."""
    if command.started:
        own_words = (own_word or "$" for own_word in command.words[1 : command.own_word_count])
        return not any(leaves_workspace(own_word, workspace) for own_word in own_words)
    name = program_name(command.words[0] or "")
    # Where an option has the text, the first word is a file.
    has_text = any(_HAS_TEXT.match(source) for source in command.sources[1:])
    is_text = name in _table().text_first and not has_text
    are_options_over = False
    for word, source in zip(command.words[1:], command.sources[1:], strict=True):
        if word is None and ("$'" in source or _STRANGE_EXPANSION.search(source)):
            return False
        if is_text and (are_options_over or not source.startswith("-")):
            is_text = False
            continue
        are_options_over = are_options_over or source == "--"
        if leaves_workspace(_QUOTES.sub("", source) if word is None else _SIGNS.sub(" ", word), workspace):
            return False
    return True


def _without_pager_option(command: Command) -> Command:
    if command.words[:2] != ("git", "--no-pager"):
        return command
    return Command((command.words[0], *command.words[2:]), (command.sources[0], *command.sources[2:]))


def _is_read_only_subcommand(command: Command) -> bool:
    name = subcommand(command.words)
    if not name:
        return False
    table, key = _table(), (known_name(command.words[0] or ""), *name)
    if key not in table.subcommands or has_escalating_words(command.words, command.sources, len(key)):
        return False
    arguments = command.words[len(key) :]
    if key in table.without_operands and any(not (word or "x").startswith("-") for word in arguments):
        return False
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    needed, refused = table.only_with.get(key), table.never_with.get(key, frozenset())
    return (needed is None or not needed.isdisjoint(options)) and refused.isdisjoint(options)
