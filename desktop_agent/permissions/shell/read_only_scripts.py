"""Programs of sed, awk and Python that only print. What is not surely one of these is taken for one that does more."""

import ast
import re
from collections.abc import Sequence

from desktop_agent.permissions.shell.nodes import word_set

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
# Wherever it stands, also in a text: what starts a program, reads one, or loads one.
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
    return bool(scripts) and all(each is not None and _sed_program_only_prints(each) for each in scripts)


def _sed_program_only_prints(program: str) -> bool:
    """Read one command after the other, each in one step, so that a long program takes no longer than its length."""
    at = _skip(_BLANKS, program, 0)
    if len(program) > _MAX_SCRIPT_LENGTH or at == len(program):
        return False
    while at < len(program):
        end = _end_of_sed_command(program, _end_of_sed_addresses(program, at))
        ended = None if end is None else _SED_END.match(program, end)
        if ended is None:
            return False
        at = ended.end()
    return True


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _end_of_sed_addresses(program: str, at: int) -> int:
    behind = _skip(_SED_ADDRESS, program, at)
    if behind > at:
        comma = _skip(_BLANKS, program, behind)
        if program[comma : comma + 1] == ",":
            second = _skip(_BLANKS, program, comma + 1)
            end = max(_skip(_SED_ADDRESS, program, second), _skip(_SED_RANGE_END, program, second))
            behind = end if end > second else behind
    at = _skip(_BLANKS, program, behind)
    return _skip(_BLANKS, program, at + 1) if program[at : at + 1] == "!" else at


def _end_of_sed_command(program: str, at: int) -> int | None:
    name, sign = program[at : at + 1], program[at + 1 : at + 2]
    if name and name in _SED_PLAIN:
        return at + 1
    if name != "s" or sign not in _SED_SIGNS or not sign:
        return None
    at += 2
    for _ in range(2):
        while at < len(program) and program[at] != sign:
            if program[at] == "\n":
                return None
            at += 2 if program[at] == "\\" else 1
        if at >= len(program):
            return None
        at += 1
    return _skip(_SED_REPLACE_FLAGS, program, at)


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
    if len(program) > _MAX_SCRIPT_LENGTH:
        return False
    bare = _AWK_TEXT.sub('""', program)
    if '"' in bare.replace('""', "") or _AWK_STARTS.search(program.replace("||", "")):
        return False
    if "/" in program and ">" in program:
        # Within a pattern a bracket is a sign like any other.
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
    given = words[1:] if words[:1] == ("-I",) else words
    program = given[1] if len(given) == 2 and given[0] == "-c" else None
    if program is None or len(program) > _MAX_SCRIPT_LENGTH or "__" in program:
        return False
    try:
        return all(map(_python_only_prints, ast.walk(ast.parse(program))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _python_only_prints(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return all(each.name == "json" and each.asname is None for each in names)
        case ast.Attribute(attr=name):
            return name in _PYTHON_METHODS
        case ast.Name(id=name, ctx=ast.Store()):
            # A function by another's name would be called as that.
            return name not in _PYTHON_FUNCTIONS
        case ast.Call(func=ast.Name(id="open"), args=given, keywords=named):
            modes = [*given[1:2], *(each.value for each in named if each.arg != "encoding")]
            reads = all(isinstance(each, ast.Constant) and each.value in {"r", "rb", "rt"} for each in modes)
            return reads and len(given) in {1, 2} and all(each.arg in {"mode", "encoding"} for each in named)
        case ast.Call(func=ast.Name(id=name)):
            return name in _PYTHON_FUNCTIONS
        case ast.Call(func=ast.Attribute()):
            return True
        case ast.Call():
            return False
        case _:
            return isinstance(node, _PYTHON_NODES)
