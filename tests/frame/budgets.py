"""Finds code that is too long, badly named, or that would stop the event loop.

`python -m tests.frame.budgets` prints the largest of each kind and how the tests compare with the code.
"""

import ast
import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("desktop_agent", "ui", "resources")

MODULE_LINES = 500
FUNCTION_LINES = 50
CLASS_LINES = 300
FOLDER_MODULES = 25
JUNK_DRAWERS = ("util", "utils", "helper", "helpers", "manager", "misc", "common", "models")

FORBIDDEN_CALLS = {
    "exec": "a nested event loop kills the running task: open() and a future",
    "exec_": "a nested event loop kills the running task: open() and a future",
    "processEvents": "re-enters the event loop: wait for a signal",
    "sleep": "stops the event loop: asyncio.sleep, or a timer",
    "itemAt": "PySide takes later objects for an item of a layout that Qt deleted: ui.style.boxes.parts_of",
    "print": "a library has no terminal: log, or write to the stream it was given",
}

OUTER_LOOP = ("ui/shell/startup_window.py", "loop.exec")
"""Runs Qt's loop before there is asyncio: nothing is nested in it, and no task can be in it."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One parsed file; `path` is relative to the root."""

    path: str
    text: str

    @property
    def lines(self) -> int:
        """The number of lines, also where the last has no newline."""
        return self.text.count("\n") + (not self.text.endswith("\n"))

    def walk(self) -> Iterator[ast.AST]:
        """Yield every node, parsed anew."""
        return ast.walk(ast.parse(self.text, self.path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node, parsed once and kept."""
        return list(self.walk())


def sources(root: Path, packages: tuple[str, ...] = PACKAGES) -> list[Source]:
    """All Python files of the packages."""
    files = [file for package in packages for file in sorted((root / package).rglob("*.py"))]
    return [Source(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")) for file in files]


def length(node: Function | ast.ClassDef) -> int:
    """The number of lines, without decorators."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def module_faults(source: Source) -> Iterator[str]:
    """Length and name of a file."""
    if source.lines > MODULE_LINES:
        yield f"{source.path}: {source.lines} lines, at most {MODULE_LINES}"
    words = Path(source.path).with_suffix("").parts
    for word in words:
        if word in JUNK_DRAWERS or word.rpartition("_")[2] in {"util", "utils", "helper", "helpers"}:
            yield f"{source.path}: {word} is no name: say what is in it"


def documented(found: list[Source]) -> dict[str, set[str]]:
    """The methods with a docstring of each class, with those that it inherits from classes of these files."""
    classes = [node for source in found for node in source.nodes if isinstance(node, ast.ClassDef)]
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for cls in classes:
        methods = (method for method in cls.body if isinstance(method, Function) and ast.get_docstring(method))
        own.setdefault(cls.name, set()).update(method.name for method in methods)
        bases.setdefault(cls.name, set()).update(ast.unparse(base).rpartition(".")[2] for base in cls.bases)

    def inherited(name: str) -> set[str]:
        return own.get(name, set()).union(*map(inherited, bases.get(name, set()) - {name}))

    return {name: inherited(name) for name in own}


def node_faults(source: Source, documented_methods: dict[str, set[str]]) -> Iterator[str]:
    """Functions, classes and calls in a file."""
    for node in source.nodes:
        where = f"{source.path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, Function) and length(node) > FUNCTION_LINES:
            yield f"{where}: {node.name} has {length(node)} lines, at most {FUNCTION_LINES}"
        elif isinstance(node, ast.ClassDef):
            if length(node) > CLASS_LINES:
                yield f"{where}: {node.name} has {length(node)} lines, at most {CLASS_LINES}"
            yield from (
                f"{source.path}:{method.lineno}: {node.name}.{method.name} has no docstring"
                for method in bare(node)
                if method.name not in documented_methods[node.name]
            )
        elif isinstance(node, ast.Call) and (fault := forbidden_call(node, source.path)):
            yield f"{where}: {fault}"


def bare(cls: ast.ClassDef) -> Iterator[Function]:
    """Public methods without a docstring, except those whose name says all: Qt overrides and one-line properties.

    One that overrides a method with a docstring inherits it.
    """
    if cls.name.startswith("_"):
        return
    for method in cls.body:
        if not isinstance(method, Function) or method.name.startswith("_") or ast.get_docstring(method):
            continue
        decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in method.decorator_list}
        if ast.unparse(method.body[0]) == "...":
            continue
        is_short_property = "property" in decorators and len(method.body) == 1
        if not is_short_property and method.name.islower() and not decorators & {"override", "overload", "setter"}:
            yield method


def forbidden_call(node: ast.Call, path: str) -> str | None:
    """Why this call must not be in this file, or None."""
    match node.func:
        # To write out every call takes most of the time of all checks.
        case ast.Name(id=name) | ast.Attribute(attr=name) if name not in FORBIDDEN_CALLS:
            return None
    called = ast.unparse(node.func)
    owner, _, name = called.rpartition(".")
    if name not in FORBIDDEN_CALLS or (path, called) == OUTER_LOOP:
        return None
    if name == "sleep" and owner not in {"", "time"}:
        return None
    if name == "print" and owner:
        return None
    return f"{called}(): {FORBIDDEN_CALLS[name]}"


def folder_faults(files: list[Source]) -> Iterator[str]:
    """Folders with too many modules; `__init__` is not counted."""
    folders: dict[str, int] = {}
    for source in files:
        path = Path(source.path)
        if path.name != "__init__.py":
            folders[path.parent.as_posix()] = folders.get(path.parent.as_posix(), 0) + 1
    for folder, count in folders.items():
        if count > FOLDER_MODULES:
            yield f"{folder}: {count} modules, at most {FOLDER_MODULES}"


def faults(root: Path) -> list[str]:
    """Everything wrong under this root, in one list."""
    return faults_of(sources(root))


def faults_of(found: list[Source]) -> list[str]:
    """Everything wrong in these files."""
    methods = documented(found)
    wrong = [fault for source in found for fault in (*module_faults(source), *node_faults(source, methods))]
    return wrong + list(folder_faults(found))


def report(code: list[Source], tests: list[Source]) -> str:
    """The longest of each kind, and the ratio of tests to code."""
    longest = max(code, key=lambda source: source.lines)
    nodes = [(source, node) for source in code for node in source.nodes]
    functions = [(length(node), f"{source.path} {node.name}") for source, node in nodes if isinstance(node, Function)]
    classes = [(length(node), f"{source.path} {node.name}") for source, node in nodes if isinstance(node, ast.ClassDef)]
    code_lines, test_lines = (sum(source.lines for source in part) for part in (code, tests))
    return "\n".join(
        [
            f"code      {code_lines} lines in {len(code)} files",
            f"tests     {test_lines} lines in {len(tests)} files, {test_lines / code_lines:.2f} times the code",
            f"module    {longest.lines} lines: {longest.path}",
            "function  {} lines: {}".format(*max(functions)),
            "class     {} lines: {}".format(*max(classes)),
        ]
    )


if __name__ == "__main__":
    gc.disable()  # all that is read stays until the end
    everything = sources(ROOT)
    sys.stdout.write(report(everything, sources(ROOT, ("tests",))) + "\n")
    problems = faults_of(everything)
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    sys.exit(1 if problems else 0)
