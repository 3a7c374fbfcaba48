"""Prints how the code is divided: sizes, and folders and modules that are too small.

    python -m tests.frame.structure

No test fails for these; tests/frame/budgets.py has the limits.
"""

import ast
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from tests.frame.budgets import CLASS_LINES, ROOT, Function, Source, length, sources

PACKAGES = ("desktop_agent", "ui")
SMALL = 60
"""A module of fewer lines that only one other imports could be a part of that one."""

BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)


@dataclass
class Module:
    """One file, by its dotted name."""

    source: Source
    name: str
    importers: set[str] = field(default_factory=set)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source.text, self.source.path)

    @property
    def folder(self) -> str:
        return PurePosixPath(self.source.path).parent.as_posix()

    @property
    def is_package(self) -> bool:
        return self.source.path.endswith("__init__.py")

    @cached_property
    def names(self) -> dict[str, str]:
        """The full name of each class defined here and of each imported name."""
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        full_names = {node.name: f"{self.name}.{node.name}" for node in classes}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                full_names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                full_names |= {alias.asname or alias.name: alias.name for alias in node.names}
        return full_names


def modules(root: Path = ROOT) -> dict[str, Module]:
    by_name: dict[str, Module] = {}
    for source in sources(root, PACKAGES):
        name = source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        by_name[name] = Module(source, name)
    for module in by_name.values():
        for full_name in module.names.values():
            target = by_name.get(full_name) or by_name.get(full_name.rpartition(".")[0])
            if target is not None and target is not module:
                target.importers.add(module.name)
    return by_name


def functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def complexity(function: Function) -> int:
    """McCabe's complexity, without the functions inside: they have their own."""
    return 1 + sum(_weight(node) for node in _own_nodes(function))


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.ClassDef | ast.Lambda):
            yield child
            yield from _own_nodes(child)


def _weight(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, BRANCHES))


def p95(values: Sequence[int]) -> int:
    return sorted(values)[int(len(values) * 0.95)] if values else 0


def folder_rows(by_name: dict[str, Module]) -> Iterator[str]:
    """One line for each folder just below a package, and one for the whole."""
    tops: dict[str, list[Module]] = defaultdict(list)
    for module in by_name.values():
        tops["/".join(PurePosixPath(module.folder).parts[:2])].append(module)
        tops["all"].append(module)
    yield f"{'folder':<28}{'modules':>8}{'lines':>8}{'fn median':>10}{'fn p95':>8}{'cplx p95':>9}"
    for top, inside in tops.items():
        functions_here = [function for module in inside for function in functions(module.tree)]
        lengths = [length(function) for function in functions_here] or [0]
        count, lines = sum(not module.is_package for module in inside), sum(module.source.lines for module in inside)
        median, complex_95 = statistics.median(lengths), p95([complexity(function) for function in functions_here])
        yield f"{top:<28}{count:>8}{lines:>8}{median:>10g}{p95(lengths):>8}{complex_95:>9}"


def lonely_folders(by_name: dict[str, Module]) -> list[str]:
    """Folders of one module, without folders below."""
    count = Counter(module.folder for module in by_name.values() if not module.is_package)
    parents = {PurePosixPath(module.folder).parent.as_posix() for module in by_name.values()}
    return sorted(folder for folder, modules in count.items() if modules == 1 and folder not in parents)


def small_modules(by_name: dict[str, Module]) -> list[str]:
    return sorted(
        f"{module.source.path} ({module.source.lines}, for {next(iter(module.importers))})"
        for module in by_name.values()
        if not module.is_package and module.source.lines < SMALL and len(module.importers) == 1
    )


def large_classes(by_name: dict[str, Module]) -> list[str]:
    """Classes over the limit, each counted with the bases that no other class inherits."""
    classes: dict[str, tuple[int, list[str]]] = {}
    heirs: Counter[str] = Counter()
    for module in by_name.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                bases = [module.names.get(ast.unparse(base).partition("[")[0], "") for base in node.bases]
                classes[f"{module.name}.{node.name}"] = length(node), bases
                heirs.update(bases)

    def whole(name: str) -> int:
        lines, bases = classes[name]
        return lines + sum(whole(base) for base in bases if base in classes and heirs[base] == 1 and base != name)

    sizes = sorted(((whole(name), name) for name in classes if heirs[name] != 1), reverse=True)
    return [f"{name} ({lines})" for lines, name in sizes if lines > CLASS_LINES]


def loaded_by_a_prompt() -> list[str]:
    """The modules of the runtime that `desktop-agent ask` imports for one answer of the demo."""
    with tempfile.TemporaryDirectory() as folder:
        ask = ["-m", "desktop_agent", "ask", "--demo", "--data-dir", folder, "Hello"]
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *ask], cwd=ROOT, capture_output=True, text=True, check=True
        )
    return sorted(set(re.findall(r"\|\s+(desktop_agent[\w.]*)$", done.stderr, re.MULTILINE)))


def report(root: Path = ROOT) -> str:
    by_name = modules(root)
    lists = {
        "folders of one module": lonely_folders(by_name),
        f"modules of under {SMALL} lines with one importer": small_modules(by_name),
        f"classes of over {CLASS_LINES} lines with the bases that are theirs alone": large_classes(by_name),
    }
    lines = list(folder_rows(by_name))
    for title, names in lists.items():
        lines += ["", f"{title}: {len(names)}", *(f"  {name}" for name in names)]
    loaded = loaded_by_a_prompt()
    demo = sum(name.startswith("desktop_agent.providers.demo") for name in loaded)
    return "\n".join([*lines, "", f"modules that a prompt loads: {len(loaded)}, {demo} of them the demo's own", ""])


if __name__ == "__main__":
    sys.stdout.write(report())
