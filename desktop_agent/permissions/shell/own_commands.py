"""Commands of the shell itself that make more of their words than words: names to set, sums, subscripts, tests.

A subscript may run a command: `test -v 'a[$(x)]'`. Here stands what is surely read as it looks; all else is not
understood.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from desktop_agent.permissions.shell.nodes import WORDS, is_inert_variable, literal_word, node_text, word_set

if TYPE_CHECKING:
    from tree_sitter import Node

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
    """Whether the shell takes the words of a command of its own for no more than they look. The first is its name.

    It `declares` if the shell read it as a declaration: then no value is split into several words.
    """
    name = (words[0] or "").rpartition("/")[2]
    if name in _DECLARING:
        return _is_plain_declaration(name, words, sources, is_whole=declares)
    look = _PLAIN_CHECKS.get(name)
    return look is None or look(words, sources)


def is_plain_test(node: "Node", source: bytes) -> bool:
    """Whether what stands between brackets is one test of files or texts."""
    units = _flatten_test(node)
    if units is None or any(a.end_byte >= b.start_byte for a, b in pairwise(units)):
        return False
    sources = [node_text(each, source) for each in units]
    is_double = sources[0] == "[["
    words = [
        literal_word(each, source) if each.type in WORDS else text for each, text in zip(units, sources, strict=True)
    ]
    # In there nothing is split, and no file is looked for.
    is_one = [is_double or _is_single_word(*each) for each in zip(words, sources, strict=True)]
    if any("$'" in each for each in sources):
        return False
    return _is_test(words[1:-1], is_one[1:-1], _BINARY_TESTS | ({"=~"} if is_double else _NUMBER_TESTS))


def variables_set_by(words: Words) -> tuple[str | None, ...]:
    """What a command of the shell may set, among them words that are no names; None for what cannot be told."""
    name, given = (words[0] or "").rpartition("/")[2], words[1:]
    match name:
        case "read":
            return tuple(_variables_of_read(given))
        case "mapfile" | "readarray":
            return tuple(given)
        case "getopts":
            return tuple(given[1:2])
        case "printf" if given and (given[0] is None or given[0].startswith("-v")):
            glued = (given[0] or "")[2:]
            return (glued or (given[1] if len(given) > 1 else None),)
        case "wait" if any((each or "-p").startswith("-") and "p" in (each or "-p") for each in given):
            return (None,)
        case _:
            return (None,) if name in _DECLARING and given else ()


def changes_folder(words: Words) -> bool:
    """Whether what stands behind it in the line, or what it starts, runs in another folder."""
    name = (words[0] or "").rpartition("/")[2]
    if name in _MOVING:
        return True
    if name == "find":
        return not {"-execdir", "-okdir"}.isdisjoint(words)
    letters = _MOVED_BY_OPTION.get(name, "")
    options = [each for each in words[1:] if letters and each is not None and each.startswith("-")]
    return any(each.startswith("--ch") or any(letter in each for letter in letters) for each in options)


def _flatten_test(node: "Node", level: int = 0) -> list["Node"] | None:
    """Words and operators in their order, the brackets among them; None where there is anything else, or too much."""
    if level > _MAX_TEST_DEPTH:
        return None
    found: list[Node] = []
    for child in node.children:
        if child.type in {"unary_expression", "binary_expression", "negated_expression"}:
            inside = _flatten_test(child, level + 1)
            if inside is None:
                return None
            found += inside
        elif child.is_named and child.type not in WORDS | {"test_operator", "regex", "extglob_pattern"}:
            return None
        else:
            found.append(child)
    return found


def _is_test(words: Words, is_one: Sequence[bool], of_two: frozenset[str]) -> bool:
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
            return words[1] in of_two
        case _:
            return False


def _is_single_word(literal: str | None, source: str) -> bool:
    return literal is not None or _SINGLE.fullmatch(source) is not None


def _is_plain_test_command(words: Words, sources: Sequence[str]) -> bool:
    has_brackets = (words[0] or "").endswith("[")
    if has_brackets and words[-1] != "]":
        return False
    given = slice(1, -1 if has_brackets else None)
    is_one = [_is_single_word(*each) for each in zip(words, sources, strict=True)]
    return len(words[given]) == 0 or _is_test(words[given], is_one[given], _BINARY_TESTS | _NUMBER_TESTS)


def _is_plain_declaration(name: str, words: Words, sources: Sequence[str], *, is_whole: bool) -> bool:
    options = re.compile(f"-[{_DECLARING[name]}]+")
    for each, source in zip(words[1:], sources[1:], strict=True):
        text = source if each is None and is_whole else each
        if text is None or not (_is_declared_as_text(text) or options.fullmatch(text)):
            return False
    return True


def _is_declared_as_text(text: str) -> bool:
    return _DECLARED.fullmatch(text) is not None and is_inert_variable(text.partition("=")[0])


def _is_plain_printf(words: Words, sources: Sequence[str]) -> bool:
    begin = 1
    if len(words) > 1 and (words[1] or "").startswith("-v"):
        name = (words[1] or "")[2:] or (words[2] if len(words) > 2 else None)
        if not is_inert_variable(name):
            return False
        begin = 2 if words[1] != "-v" else 3
    if len(words) <= begin:
        return True
    first = words[begin]
    if first is None:
        # It may become an option.
        return re.match(r'"?[^-"$`*?\[{~\\\']', sources[begin]) is not None
    # Each further name is set as well.
    return not first.startswith("-v")


def _is_plain_read(words: Words, _: Sequence[str]) -> bool:
    return all(is_inert_variable(each) for each in _variables_of_read(words[1:])) and None not in words


def _variables_of_read(given: Words) -> Sequence[str | None]:
    """What is no option of `read`, and no value of one; a word that cannot be told is None."""
    found: list[str | None] = []
    is_value = False
    for each in given:
        option = _READ_OPTION.fullmatch(each) if each is not None and not is_value else None
        if not is_value and option is None:
            found.append(each)
        is_value = option is not None and bool(option[1])
    return found


def _is_plain_wait(words: Words, sources: Sequence[str]) -> bool:
    pairs = zip(words[1:], sources[1:], strict=True)
    return all(source in {"$!", '"$!"'} if each is None else _JOB.fullmatch(each) for each, source in pairs)


def _has_plain_options(words: Words, _: Sequence[str]) -> bool:
    first = words[1:3]
    return len(first) == 2 and None not in first and is_inert_variable(first[1])


def _is_plain_mapfile(words: Words, _: Sequence[str]) -> bool:
    return all(is_inert_variable(each) for each in words[1:])


def _is_plain_set(words: Words, _: Sequence[str]) -> bool:
    """What `set` may switch without changing how the rest is read."""
    after_o = False
    for each in words[1:]:
        found = _SETTINGS.fullmatch(each or "?")
        if after_o:
            found, after_o = each == "pipefail", False
        elif found is not None:
            after_o = bool(found[1])
        if not found:
            return False
    return not after_o


def _is_plain_job_list(words: Words, _: Sequence[str]) -> bool:
    return all(each is not None and re.fullmatch(r"-[lnprs]+|%[0-9%+-]", each) for each in words[1:])


def _is_plain_time(words: Words, sources: Sequence[str]) -> bool:
    """The shell knows its own options by how they are written: `time \\-p` runs a program."""
    pairs = zip(words[1:3], sources[1:3], strict=True)
    return all(word == source for word, source in pairs if word is not None and word.startswith("-"))


def _never(_words: Words, _sources: Sequence[str]) -> bool:
    return False


_PLAIN_CHECKS: Mapping[str, Callable[[Words, Sequence[str]], bool]] = {
    "test": _is_plain_test_command,
    "[": _is_plain_test_command,
    # Behind another command it is none of the shell's.
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
