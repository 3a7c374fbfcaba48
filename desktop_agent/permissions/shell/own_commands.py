"""Commands of the shell itself that make more of their words than words: names to set, sums, subscripts, tests.

A subscript may run a command: `test -v 'a[$(x)]'`. Here stands what is surely read as it looks; all else is not
understood.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from desktop_agent.permissions.shell.nodes import WORDS, is_dead_name, listed, text_of, word

if TYPE_CHECKING:
    from tree_sitter import Node

Words = Sequence[str | None]
_DECLARED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:=.*)?", re.DOTALL)
# One word, whatever it becomes: quoted, and no list.
_SINGLE = re.compile(r'"(?:[^"\\`@]|\\.)*"|\$[#?$!]', re.DOTALL)
# None of these does sums, nor looks for a variable by its name.
_OF_ONE = frozenset(f"-{letter}" for letter in "bcdefghkLNnOGprSsuwxz")
_OF_TWO = listed("= == != -nt -ot -ef")
# Only in double brackets these do sums.
_OF_NUMBERS = listed("-eq -ne -lt -le -gt -ge")
_DECLARING: Mapping[str, str] = {
    **dict.fromkeys(("declare", "typeset", "local"), "xrglup"),
    "export": "np",
    "readonly": "p",
    "unset": "vf",
}
_READ_OPTION = re.compile(r"-[rse]*([dnNtup]?)")
_JOB = re.compile(r"-[fn]+|[0-9]+|%[0-9%+-]")
_DEEPEST_TEST = 9
_SETTINGS = re.compile(r"[-+][eufxvCnm]*(o?)")
# They go elsewhere; what follows them in the line runs there.
_MOVING = listed("cd pushd popd chroot")
_MOVED_BY_OPTION: Mapping[str, str] = {"env": "C", "sudo": "DRi", "doas": "C"}


def is_read_plainly(words: Words, sources: Sequence[str], *, declares: bool = False) -> bool:
    """Whether the shell takes the words of a command of its own for no more than they look. The first is its name.

    It `declares` if the shell read it as a declaration: then no value is split into several words.
    """
    name = (words[0] or "").rpartition("/")[2]
    if name in _DECLARING:
        return _declares_plainly(name, words, sources, is_whole=declares)
    look = _PLAINLY.get(name)
    return look is None or look(words, sources)


def is_plain_test(node: "Node", source: bytes) -> bool:
    """Whether what stands between brackets is one test of files or texts."""
    units = _units(node)
    if units is None or any(a.end_byte >= b.start_byte for a, b in pairwise(units)):
        return False
    sources = [text_of(each, source) for each in units]
    is_double = sources[0] == "[["
    words = [word(each, source) if each.type in WORDS else text for each, text in zip(units, sources, strict=True)]
    # In there nothing is split, and no file is looked for.
    is_one = [is_double or _is_one(*each) for each in zip(words, sources, strict=True)]
    if any("$'" in each for each in sources):
        return False
    return _is_test(words[1:-1], is_one[1:-1], _OF_TWO | ({"=~"} if is_double else _OF_NUMBERS))


def names_set_by(words: Words) -> tuple[str | None, ...]:
    """What a command of the shell may set, among them words that are no names; None for what cannot be told."""
    name, given = (words[0] or "").rpartition("/")[2], words[1:]
    match name:
        case "read":
            return tuple(_names_of_read(given))
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


def _units(node: "Node", level: int = 0) -> list["Node"] | None:
    """Words and operators in their order, the brackets among them; None where there is anything else, or too much."""
    if level > _DEEPEST_TEST:
        return None
    found: list[Node] = []
    for child in node.children:
        if child.type in {"unary_expression", "binary_expression", "negated_expression"}:
            inside = _units(child, level + 1)
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
            return words[0] in _OF_ONE
        case 3:
            return words[1] in of_two
        case _:
            return False


def _is_one(literal: str | None, source: str) -> bool:
    return literal is not None or _SINGLE.fullmatch(source) is not None


def _tests_plainly(words: Words, sources: Sequence[str]) -> bool:
    has_brackets = (words[0] or "").endswith("[")
    if has_brackets and words[-1] != "]":
        return False
    given = slice(1, -1 if has_brackets else None)
    is_one = [_is_one(*each) for each in zip(words, sources, strict=True)]
    return len(words[given]) == 0 or _is_test(words[given], is_one[given], _OF_TWO | _OF_NUMBERS)


def _declares_plainly(name: str, words: Words, sources: Sequence[str], *, is_whole: bool) -> bool:
    options = re.compile(f"-[{_DECLARING[name]}]+")
    for each, source in zip(words[1:], sources[1:], strict=True):
        text = source if each is None and is_whole else each
        if text is None or not (_is_declared_as_text(text) or options.fullmatch(text)):
            return False
    return True


def _is_declared_as_text(text: str) -> bool:
    return _DECLARED.fullmatch(text) is not None and is_dead_name(text.partition("=")[0])


def _prints_plainly(words: Words, sources: Sequence[str]) -> bool:
    begin = 1
    if len(words) > 1 and (words[1] or "").startswith("-v"):
        name = (words[1] or "")[2:] or (words[2] if len(words) > 2 else None)
        if not is_dead_name(name):
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


def _reads_plainly(words: Words, _: Sequence[str]) -> bool:
    return all(is_dead_name(each) for each in _names_of_read(words[1:])) and None not in words


def _names_of_read(given: Words) -> Sequence[str | None]:
    """What is no option of `read`, and no value of one; a word that cannot be told is None."""
    found: list[str | None] = []
    is_value = False
    for each in given:
        option = _READ_OPTION.fullmatch(each) if each is not None and not is_value else None
        if not is_value and option is None:
            found.append(each)
        is_value = option is not None and bool(option[1])
    return found


def _waits_plainly(words: Words, sources: Sequence[str]) -> bool:
    pairs = zip(words[1:], sources[1:], strict=True)
    return all(source in {"$!", '"$!"'} if each is None else _JOB.fullmatch(each) for each, source in pairs)


def _takes_options_plainly(words: Words, _: Sequence[str]) -> bool:
    first = words[1:3]
    return len(first) == 2 and None not in first and is_dead_name(first[1])


def _fills_plainly(words: Words, _: Sequence[str]) -> bool:
    return all(is_dead_name(each) for each in words[1:])


def _settles_plainly(words: Words, _: Sequence[str]) -> bool:
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


def _names_jobs(words: Words, _: Sequence[str]) -> bool:
    return all(each is not None and re.fullmatch(r"-[lnprs]+|%[0-9%+-]", each) for each in words[1:])


def _times_plainly(words: Words, sources: Sequence[str]) -> bool:
    """The shell knows its own options by how they are written: `time \\-p` runs a program."""
    pairs = zip(words[1:3], sources[1:3], strict=True)
    return all(word == source for word, source in pairs if word is not None and word.startswith("-"))


def _never(_words: Words, _sources: Sequence[str]) -> bool:
    return False


_PLAINLY: Mapping[str, Callable[[Words, Sequence[str]], bool]] = {
    "test": _tests_plainly,
    "[": _tests_plainly,
    # Behind another command it is none of the shell's.
    "[[": _never,
    "printf": _prints_plainly,
    "read": _reads_plainly,
    "wait": _waits_plainly,
    "getopts": _takes_options_plainly,
    "mapfile": _fills_plainly,
    "readarray": _fills_plainly,
    "set": _settles_plainly,
    "shopt": _never,
    "jobs": _names_jobs,
    "time": _times_plainly,
}
