"""How the tree is cut: sizes, and what is cut too small.

    python -m tests.frame.structure

Nothing here fails; tests/frame/budgets.py has the limits.
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
"""Lines below which a module that one other imports could be a part of that."""

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
        """What each imported or own name means, in full."""
        found = {node.name: f"{self.name}.{node.name}" for node in self.tree.body if isinstance(node, ast.ClassDef)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            elif isinstance(node, ast.Import):
                found |= {each.asname or each.name: each.name for each in node.names}
        return found


def modules(root: Path = ROOT) -> dict[str, Module]:
    found: dict[str, Module] = {}
    for source in sources(root, PACKAGES):
        name = source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        found[name] = Module(source, name)
    for module in found.values():
        for meant in module.names.values():
            target = found.get(meant) or found.get(meant.rpartition(".")[0])
            if target is not None and target is not module:
                target.importers.add(module.name)
    return found


def functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def complexity(function: Function) -> int:
    """McCabe's number; functions inside count for themselves."""
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


def folder_rows(found: dict[str, Module]) -> Iterator[str]:
    """One line for each folder just below a package, and one for the whole."""
    tops: dict[str, list[Module]] = defaultdict(list)
    for module in found.values():
        tops["/".join(PurePosixPath(module.folder).parts[:2])].append(module)
        tops["all"].append(module)
    yield f"{'folder':<28}{'modules':>8}{'lines':>8}{'fn median':>10}{'fn p95':>8}{'cplx p95':>9}"
    for top, inside in tops.items():
        made = [each for module in inside for each in functions(module.tree)]
        lengths = [length(each) for each in made] or [0]
        count, lines = sum(not each.is_package for each in inside), sum(each.source.lines for each in inside)
        middle, most = statistics.median(lengths), p95([complexity(each) for each in made])
        yield f"{top:<28}{count:>8}{lines:>8}{middle:>10g}{p95(lengths):>8}{most:>9}"


def lonely_folders(found: dict[str, Module]) -> list[str]:
    """Folders of one module, without folders below."""
    count = Counter(each.folder for each in found.values() if not each.is_package)
    parents = {PurePosixPath(each.folder).parent.as_posix() for each in found.values()}
    return sorted(folder for folder, modules in count.items() if modules == 1 and folder not in parents)


def small_modules(found: dict[str, Module]) -> list[str]:
    return sorted(
        f"{each.source.path} ({each.source.lines}, for {next(iter(each.importers))})"
        for each in found.values()
        if not each.is_package and each.source.lines < SMALL and len(each.importers) == 1
    )


def large_classes(found: dict[str, Module]) -> list[str]:
    """Classes with the bases that nobody else inherits."""
    classes: dict[str, tuple[int, list[str]]] = {}
    heirs: Counter[str] = Counter()
    for module in found.values():
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
    found = modules(root)
    lists = {
        "folders of one module": lonely_folders(found),
        f"modules of under {SMALL} lines with one importer": small_modules(found),
        f"classes of over {CLASS_LINES} lines with the bases that are theirs alone": large_classes(found),
    }
    lines = list(folder_rows(found))
    for title, names in lists.items():
        lines += ["", f"{title}: {len(names)}", *(f"  {name}" for name in names)]
    loaded = loaded_by_a_prompt()
    demo = sum(name.startswith("desktop_agent.providers.demo") for name in loaded)
    return "\n".join([*lines, "", f"modules that a prompt loads: {len(loaded)}, {demo} of them the demo's own", ""])


if __name__ == "__main__":
    sys.stdout.write(report())
