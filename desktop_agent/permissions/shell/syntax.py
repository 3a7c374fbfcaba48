"""What the nodes of a parsed shell line mean: words, redirections, variables, and builtins of the shell."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


def word_set(names: str) -> frozenset[str]:
    """Return the names that stand in one text, with spaces between."""
    return frozenset(names.split())


# Words of the shell itself are such only where nothing touches them.
RESERVED = word_set("if then elif else fi for while until select in do done case esac function { } ! [ ] [[ ]]")
# All else makes a line one that is not understood.
_STRUCTURE = word_set(
    "program list pipeline subshell compound_statement if_statement elif_clause else_clause for_statement "
    "while_statement do_group case_statement case_item function_definition negated_command redirected_statement "
    "comment command command_name test_command declaration_command unset_command file_redirect heredoc_redirect "
    "herestring_redirect heredoc_start heredoc_body heredoc_content heredoc_end file_descriptor variable_assignment "
    "variable_name unary_expression binary_expression negated_expression parenthesized_expression test_operator "
    "regex extglob_pattern brace_expression subscript"
)
WORDS = word_set(
    "word number raw_string string string_content ansi_c_string concatenation simple_expansion expansion "
    "special_variable_name command_substitution process_substitution arithmetic_expansion"
)
RECURSED = _STRUCTURE | WORDS

_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_STRING = re.compile(r'\\([\n$`"\\])')
# Patterns of file names, braces, and a home folder at the start of a path.
_EXPANDED = re.compile(r"[*?\[]|\{(?!\})|[@+!]\(|(?:^|[=:])~")
# A shell runs what stands in these when it looks at them, or does sums with what they are set to (bash(1), "Shell
# Variables"); the options of a shell that is started decide how it reads.
_SPECIAL_VARIABLES = word_set("BASH_ENV PS4 SHELLOPTS BASHOPTS RANDOM SRANDOM HISTCMD OPTIND SECONDS BASHPID")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# POSIX, "Environment Variables": names in lower case are left to applications; the proxies are the known exception.
_PRIVATE_VARIABLE_NAME = re.compile(r"[a-z][a-z0-9_]*(?<!_proxy)")


@dataclass(frozen=True, slots=True)
class Redirection:
    """A redirection from or to a file. `target` is None where it holds an expansion; `source` is as written."""

    target: str | None
    source: str
    writes: bool


def node_text(node: "Node", source: bytes) -> str:
    """Return the node as written."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def literal_word(node: "Node", source: bytes) -> str | None:
    """Return what the command gets for this word, or None where that is not literal."""
    text = node_text(node, source)
    match node.type:
        case "command_name" if len(node.children) == 1:
            return literal_word(node.children[0], source)
        case "word" | "number" | "variable_name":
            return _unquoted(text)
        case "raw_string":
            return text[1:-1]
        case "string":
            return _string_value(text, node) if len(node.children) != 3 else _heredoc_value(node, source)
        case "concatenation":
            return _concatenated_value(node, source)
        case _:
            # The words of the grammar themselves: `[`, `export`.
            return None if node.is_named else text


def _unquoted(text: str) -> str | None:
    return None if _EXPANDED.search(_ESCAPED.sub("x", text)) else _unescaped(text)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: "" if match[1] == "\n" else match[1], text)


def _string_value(text: str, node: "Node") -> str | None:
    content = text[1:-1]
    bare = _ESCAPED_IN_STRING.sub("", content)
    if "$" in bare or "`" in bare or any(child.type not in {"string_content", '"'} for child in node.children):
        return None
    return _ESCAPED_IN_STRING.sub(lambda match: "" if match[1] == "\n" else match[1], content)


def _heredoc_value(node: "Node", source: bytes) -> str | None:
    """Return what `"$(cat <<'END' … END)"` stands for, as messages of several lines are written; else as any string."""
    inner = node.children[1]
    statement = inner.named_children[0] if inner.type == "command_substitution" and inner.named_children else None
    if statement is None or statement.type != "redirected_statement" or len(inner.named_children) != 1:
        return _string_value(node_text(node, source), node)
    command, *redirections = statement.named_children
    document = [redirection for redirection in redirections if redirection.type == "heredoc_redirect"]
    if node_text(command, source) != "cat" or len(redirections) != 1 or len(document) != 1:
        return None
    kinds = [child.type for child in document[0].children]
    start, body = document[0].children[1], document[0].children[2]
    # Quoted, nothing in it is expanded; `<<-` would take tabs away.
    is_raw = kinds == ["<<", "heredoc_start", "heredoc_body", "heredoc_end"] and node_text(start, source)[0] in "'\""
    if not is_raw:
        return None
    # The parser's body begins after the empty lines and spaces that it begins with.
    begin = source.index(b"\n", start.end_byte) + 1
    return source[begin : body.end_byte].decode("utf-8", "replace").rstrip("\n")


def _concatenated_value(node: "Node", source: bytes) -> str | None:
    """Join parts without space between; what is not quoted is checked as one, or it would hide a brace."""
    if any(a.end_byte != b.start_byte for a, b in pairwise(node.children)):
        return None
    bare, literal = "", ""
    for child in node.children:
        is_bare, text = child.type in {"word", "number"}, node_text(child, source)
        part = _unescaped(text) if is_bare else literal_word(child, source)
        if part is None or not child.is_named:
            return None
        bare += _ESCAPED.sub("x", text) if is_bare else "x"
        literal += part
    return None if _EXPANDED.search(bare) else literal


def file_redirection(node: "Node", source: bytes) -> Redirection | None:
    """Return the file of a redirection; None where it only joins two streams, or leads to nowhere."""
    target = node.named_children[-1] if node.named_children else None
    if target is None or target.type == "file_descriptor":
        # `>&-` closes a stream.
        return None
    operator = "".join(child.type for child in node.children if not child.is_named)
    text = node_text(target, source)
    if operator in {">&", "<&"} and (target.type == "number" or text == "-"):
        return None
    literal = literal_word(target, source)
    return None if literal == "/dev/null" else Redirection(literal, text, ">" in operator)


def sets_variable(node: "Node") -> bool:
    """Return whether the node changes what later commands may find in their environment."""
    if node.type in {"variable_assignment", "unset_command"}:
        return True
    if node.type != "for_statement":
        return False
    name = next((child for child in node.named_children if child.type == "variable_name"), None)
    return name is None or name.text is None or not is_private_variable(name.text.decode("utf-8", "replace"))


def is_private_variable(name: str) -> bool:
    """Return whether a variable of this name concerns the line alone: no program looks for it."""
    return _PRIVATE_VARIABLE_NAME.fullmatch(name) is not None


def is_variable_name(text: str) -> bool:
    """Return whether a variable can have this name."""
    return _VARIABLE_NAME.fullmatch(text) is not None


def is_inert_variable(name: str | None) -> bool:
    """Return whether it is the name of a variable whose value is no more than a text to any shell."""
    return name is not None and is_variable_name(name) and name not in _SPECIAL_VARIABLES


Words = Sequence[str | None]
_DECLARED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:=.*)?", re.DOTALL)
# One word, whatever it becomes: quoted, and no list.
_SINGLE = re.compile(r'"(?:[^"\\`@]|\\.)*"|\$[#?$!]', re.DOTALL)
# None of these does sums, nor looks for a variable by its name.
_UNARY_TESTS = frozenset(f"-{letter}" for letter in "bcdefghkLNnOGprSsuwxz")
_BINARY_TESTS = word_set("= == != -nt -ot -ef")
# Only in double brackets these do sums.
_NUMBER_TESTS = word_set("-eq -ne -lt -le -gt -ge")
_DECLARING: Mapping[str, str] = {
    **dict.fromkeys(("declare", "typeset", "local"), "xrglup"),
    "export": "np",
    "readonly": "p",
    "unset": "vf",
}
_READ_OPTION = re.compile(r"-[rse]*([dnNtup]?)")
_JOB = re.compile(r"-[fn]+|[0-9]+|%[0-9%+-]")
_MAX_TEST_DEPTH = 9
_SETTINGS = re.compile(r"[-+][eufxvCnm]*(o?)")
# They go elsewhere; what follows them in the line runs there.
_MOVING = word_set("cd pushd popd chroot")
_MOVED_BY_OPTION: Mapping[str, str] = {"env": "C", "sudo": "DRi", "doas": "C"}


def is_plain_builtin(words: Words, sources: Sequence[str], *, declares: bool = False) -> bool:
    """Return whether a shell builtin does no more with its words than it seems. The first word is its name.

    It `declares` if the shell read it as a declaration: then no value is split into several words.
    """
    name = (words[0] or "").rpartition("/")[2]
    if name in _DECLARING:
        return _is_plain_declaration(name, words, sources, is_whole=declares)
    check = _PLAIN_CHECKS.get(name)
    return check is None or check(words, sources)


def is_plain_test(node: "Node", source: bytes) -> bool:
    """Return whether what stands between brackets is one test of files or texts."""
    units = _flatten_test(node)
    if units is None or any(a.end_byte >= b.start_byte for a, b in pairwise(units)):
        return False
    sources = [node_text(unit, source) for unit in units]
    is_double = sources[0] == "[["
    words = [
        literal_word(unit, source) if unit.type in WORDS else text for unit, text in zip(units, sources, strict=True)
    ]
    # Double brackets split nothing and expand no file names.
    is_one = [is_double or _is_single_word(*pair) for pair in zip(words, sources, strict=True)]
    if any("$'" in text for text in sources):
        return False
    return _is_test(words[1:-1], is_one[1:-1], _BINARY_TESTS | ({"=~"} if is_double else _NUMBER_TESTS))


def variables_set_by(words: Words) -> tuple[str | None, ...]:
    """Return what a builtin may set, among them words that are no names; None for what cannot be told."""
    name, arguments = (words[0] or "").rpartition("/")[2], words[1:]
    match name:
        case "read":
            return tuple(_variables_of_read(arguments))
        case "mapfile" | "readarray":
            return tuple(arguments)
        case "getopts":
            return tuple(arguments[1:2])
        case "printf" if arguments and (arguments[0] is None or arguments[0].startswith("-v")):
            joined = (arguments[0] or "")[2:]
            return (joined or (arguments[1] if len(arguments) > 1 else None),)
        case "wait" if any((word or "-p").startswith("-") and "p" in (word or "-p") for word in arguments):
            return (None,)
        case _:
            return (None,) if name in _DECLARING and arguments else ()


def changes_folder(words: Words) -> bool:
    """Return whether what follows it in the line, or what it starts, runs in another folder."""
    name = (words[0] or "").rpartition("/")[2]
    if name in _MOVING:
        return True
    if name == "find":
        return not {"-execdir", "-okdir"}.isdisjoint(words)
    letters = _MOVED_BY_OPTION.get(name, "")
    options = [word for word in words[1:] if letters and word is not None and word.startswith("-")]
    return any(option.startswith("--ch") or any(letter in option for letter in letters) for option in options)


def _flatten_test(node: "Node", level: int = 0) -> list["Node"] | None:
    """Return words and operators in order, with the brackets; None where there is anything else, or too much."""
    if level > _MAX_TEST_DEPTH:
        return None
    units: list[Node] = []
    for child in node.children:
        if child.type in {"unary_expression", "binary_expression", "negated_expression"}:
            nested = _flatten_test(child, level + 1)
            if nested is None:
                return None
            units += nested
        elif child.is_named and child.type not in WORDS | {"test_operator", "regex", "extglob_pattern"}:
            return None
        else:
            units.append(child)
    return units


def _is_test(words: Words, is_one: Sequence[bool], binary_operators: frozenset[str]) -> bool:
    if len(words) > 1 and words[0] == "!":
        words, is_one = words[1:], is_one[1:]
    if not all(is_one):
        return False
    match len(words):
        case 1:
            return True
        case 2:
            return words[0] in _UNARY_TESTS
        case 3:
            return words[1] in binary_operators
        case _:
            return False


def _is_single_word(literal: str | None, source: str) -> bool:
    return literal is not None or _SINGLE.fullmatch(source) is not None


def _is_plain_test_command(words: Words, sources: Sequence[str]) -> bool:
    has_brackets = (words[0] or "").endswith("[")
    if has_brackets and words[-1] != "]":
        return False
    operands = slice(1, -1 if has_brackets else None)
    is_one = [_is_single_word(*pair) for pair in zip(words, sources, strict=True)]
    return len(words[operands]) == 0 or _is_test(words[operands], is_one[operands], _BINARY_TESTS | _NUMBER_TESTS)


def _is_plain_declaration(name: str, words: Words, sources: Sequence[str], *, is_whole: bool) -> bool:
    options = re.compile(f"-[{_DECLARING[name]}]+")
    for word, source in zip(words[1:], sources[1:], strict=True):
        text = source if word is None and is_whole else word
        if text is None or not (_is_declared_as_text(text) or options.fullmatch(text)):
            return False
    return True


def _is_declared_as_text(text: str) -> bool:
    return _DECLARED.fullmatch(text) is not None and is_inert_variable(text.partition("=")[0])


def _is_plain_printf(words: Words, sources: Sequence[str]) -> bool:
    start = 1
    if len(words) > 1 and (words[1] or "").startswith("-v"):
        name = (words[1] or "")[2:] or (words[2] if len(words) > 2 else None)
        if not is_inert_variable(name):
            return False
        start = 2 if words[1] != "-v" else 3
    if len(words) <= start:
        return True
    first = words[start]
    if first is None:
        # It may become an option.
        return re.match(r'"?[^-"$`*?\[{~\\\']', sources[start]) is not None
    # Each further name is set as well.
    return not first.startswith("-v")


def _is_plain_read(words: Words, _: Sequence[str]) -> bool:
    return all(is_inert_variable(name) for name in _variables_of_read(words[1:])) and None not in words


def _variables_of_read(arguments: Words) -> Sequence[str | None]:
    """Return what is no option of `read`, and no value of one; a word that cannot be told is None."""
    variables: list[str | None] = []
    is_value = False
    for word in arguments:
        option = _READ_OPTION.fullmatch(word) if word is not None and not is_value else None
        if not is_value and option is None:
            variables.append(word)
        is_value = option is not None and bool(option[1])
    return variables


def _is_plain_wait(words: Words, sources: Sequence[str]) -> bool:
    pairs = zip(words[1:], sources[1:], strict=True)
    return all(source in {"$!", '"$!"'} if word is None else _JOB.fullmatch(word) for word, source in pairs)


def _has_plain_options(words: Words, _: Sequence[str]) -> bool:
    first = words[1:3]
    return len(first) == 2 and None not in first and is_inert_variable(first[1])


def _is_plain_mapfile(words: Words, _: Sequence[str]) -> bool:
    return all(is_inert_variable(word) for word in words[1:])


def _is_plain_set(words: Words, _: Sequence[str]) -> bool:
    """Return whether `set` changes nothing about how the rest is read."""
    expects_name = False
    for word in words[1:]:
        match = _SETTINGS.fullmatch(word or "?")
        if expects_name:
            match, expects_name = word == "pipefail", False
        elif match is not None:
            expects_name = bool(match[1])
        if not match:
            return False
    return not expects_name


def _is_plain_job_list(words: Words, _: Sequence[str]) -> bool:
    return all(word is not None and re.fullmatch(r"-[lnprs]+|%[0-9%+-]", word) for word in words[1:])


def _is_plain_time(words: Words, sources: Sequence[str]) -> bool:
    r"""Check the options, which the shell knows by how they are written: `time \-p` runs a program."""
    pairs = zip(words[1:3], sources[1:3], strict=True)
    return all(word == source for word, source in pairs if word is not None and word.startswith("-"))


def _never(_words: Words, _sources: Sequence[str]) -> bool:
    return False


_PLAIN_CHECKS: Mapping[str, Callable[[Words, Sequence[str]], bool]] = {
    "test": _is_plain_test_command,
    "[": _is_plain_test_command,
    # Behind another command it is no word of the shell.
    "[[": _never,
    "printf": _is_plain_printf,
    "read": _is_plain_read,
    "wait": _is_plain_wait,
    "getopts": _has_plain_options,
    "mapfile": _is_plain_mapfile,
    "readarray": _is_plain_mapfile,
    "set": _is_plain_set,
    "shopt": _never,
    "jobs": _is_plain_job_list,
    "time": _is_plain_time,
}
