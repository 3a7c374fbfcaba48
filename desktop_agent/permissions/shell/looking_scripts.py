"""Programs of sed, awk and Python that only print. What is not surely one of these is taken for one that does more."""

import ast
import re
from collections.abc import Sequence

from desktop_agent.permissions.shell.nodes import listed

Words = Sequence[str | None]

_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)+/I?)"
_RANGE = rf"(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?)?\s*!?\s*"
_REPLACE = "|".join(
    # One for each sign that may stand between the parts. No e (starts what was made) and no w (writes a file).
    rf"s{re.escape(sign)}(?:[^{re.escape(sign)}\\\n]|\\.)*{re.escape(sign)}(?:[^{re.escape(sign)}\\\n]|\\.)*"
    rf"{re.escape(sign)}[gpiI\d]*"
    for sign in "/#|,@!:;%"
)
# sed, "Commands": all but those that read, write or start something (e, r, R, w, W), and those with labels.
_SED = re.compile(rf"(?:\s*{_RANGE}(?:[pPdDnNgGhHxlq=]|{_REPLACE})\s*(?:;|\n|$))+\s*", re.DOTALL)
_SED_FLAGS = re.compile(r"-[nErsuz]+|--quiet|--silent|--regexp-extended|--null-data|--separate|--posix")
_SED_SCRIPT = re.compile(r"-[nErsuz]*e|--expression")
_AWK_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_AWK_VALUED = re.compile(r"-[Fv]|--field-separator|--assign")
_AWK_STARTS = re.compile(r"system|getline|close|@|\|")
# A quote in a pattern: what is text and what is not cannot be told without a parser.
_AWK_UNCLEAR = re.compile(r"/[^/\n]*\"[^/\n]*/")


# Modules of Python that only calculate, and what of the built-in functions does more than that.
_PYTHON_MODULES = listed(
    "base64 bisect calendar collections csv datetime decimal difflib fractions functools hashlib heapq itertools json "
    "math re statistics string textwrap tomllib unicodedata zoneinfo"
)
_PYTHON_REACHING = listed(
    "eval exec compile breakpoint input getattr setattr delattr vars globals locals help memoryview exit quit"
)
_PYTHON_FLAGS = re.compile(r"-[BEIPSsuq]+")


def sed_only_prints(words: Words) -> bool:
    """Whether `sed` with these words behind its name prints what it reads, and nothing else."""
    scripts: list[str | None] = []
    operands: list[str | None] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word is None or not word.startswith("-") or word == "-":
            operands.append(word)
        elif _SED_SCRIPT.fullmatch(word):
            scripts.append(words[at] if at < len(words) else None)
            at += 1
        elif not _SED_FLAGS.fullmatch(word):
            return False
    if not scripts:
        scripts = operands[:1]
    return bool(scripts) and all(each is not None and _SED.fullmatch(each) is not None for each in scripts)


def awk_only_prints(words: Words) -> bool:
    """Whether `awk` with these words behind its name prints what it makes of what it reads, and nothing else."""
    at = 0
    while at < len(words):
        word = words[at]
        if word is None:
            return False
        if not word.startswith("-") or word == "-":
            return _awk_program_only_prints(word)
        if _AWK_VALUED.fullmatch(word):
            at += 1
        elif not word.startswith(("-F", "-v")):
            return False
        at += 1
    return False


def _awk_program_only_prints(program: str) -> bool:
    if _AWK_UNCLEAR.search(program):
        return False
    bare = _AWK_TEXT.sub('""', program)
    if '"' in bare.replace('""', "") or _AWK_STARTS.search(bare.replace("||", "")):
        return False
    braces = brackets = 0
    for at, sign in enumerate(bare):
        braces += (sign == "{") - (sign == "}")
        brackets += (sign == "(") - (sign == ")")
        # Within an action and outside of brackets `>` writes to a file.
        if sign == ">" and braces and not brackets and bare[at + 1 : at + 2] != "=":
            return False
    return True


def python_only_prints(words: Words) -> bool:
    """Whether `python` with these words behind its name prints what it makes of what it reads, and nothing else."""
    at = 0
    while at < len(words) and _PYTHON_FLAGS.fullmatch(words[at] or ""):
        at += 1
    program = words[at + 1] if at + 1 < len(words) and words[at] == "-c" else None
    if program is None:
        return False
    try:
        nodes = list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    # `open` by another name would open as it likes.
    named = sum(isinstance(each, ast.Name) and each.id == "open" for each in nodes)
    called = sum(isinstance(each, ast.Call) and _is_open(each) for each in nodes)
    return named == called and all(map(_python_only_prints, nodes))


def _is_open(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "open"


def _python_only_prints(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return all(each.name in _PYTHON_MODULES for each in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            return level == 0 and module in _PYTHON_MODULES and all(_is_plain_name(each.name) for each in names)
        case ast.Attribute(attr=name):
            return _is_plain_name(name)
        case ast.Name(id=name):
            return not name.startswith("__") and name not in _PYTHON_REACHING
        case ast.Call(func=ast.Name(id="open"), args=given, keywords=named):
            modes = [*given[1:2], *(each.value for each in named if each.arg in {"mode", None})]
            keys = {each.arg for each in named}
            reads = all(isinstance(each, ast.Constant) and each.value in {"r", "rb", "rt"} for each in modes)
            is_starred = any(isinstance(each, ast.Starred) for each in given)
            return reads and not is_starred and len(given) <= 2 and keys <= {"mode", "encoding", "newline", "errors"}
        case _:
            return True


def _is_plain_name(name: str) -> bool:
    # What leads from a value to its class leads to everything. A module names others, which reach further.
    return not name.startswith("_") and name not in _PYTHON_REACHING | {"sys", "os", "io", "codecs", "builtins", "*"}
