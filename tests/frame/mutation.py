"""Finds out whether the tests notice a random change. Makes one at a time, in a copy of the tree: `make mutants`.

    python -m tests.frame.mutation [--modules NAME...] [--mutants N] [--seed N]

mutants.toml names the modules and the tests that guard each. A change with which all tests pass is printed: either a
test is missing, or the change makes no difference.
"""

import argparse
import ast
import contextlib
import copy
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("mutants.toml")
PATIENCE = 4.0
"""Tests that take so many times as long as without a change, and GRACE seconds more, hang: that is noticing too."""
GRACE = 20.0
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class Guarded:
    """A module, and the tests that should notice a change of it."""

    name: str
    module: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    """One change of a source text, from one offset to another."""

    line: int
    start: int
    end: int
    before: str
    after: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.after + source[self.end :]

    def __str__(self) -> str:
        return f"{self.line}: {' '.join(self.before.split())}  ->  {self.after}"


def guarded_modules() -> list[Guarded]:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return [Guarded(name, row["module"], tuple(row["tests"])) for name, row in table.items()]


def mutants_of(source: str) -> list[Mutant]:
    """Return every change that can be made to this source, in the order of their places."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = source.encode()

    def offset(line: int, column: int) -> int:
        return len(data[: starts[line - 1] + column].decode())

    mutants: list[Mutant] = []
    for node, after in _changes(tree):
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        start, end = offset(node.lineno, node.col_offset), offset(end_line, end_column)
        mutants.append(Mutant(node.lineno, start, end, source[start:end], after))
    return sorted(set(mutants), key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield nodes and the text that replaces each."""
    for node in _run_code(tree):
        if isinstance(node, ast.expr):
            other = _other_expression(node)
            if other is not None:
                yield node, other
        elif isinstance(node, ast.Return):
            if node.value is not None and ast.unparse(node.value) != "None":
                yield node, "return None"
        elif isinstance(node, ast.Expr):
            call = node.value.value if isinstance(node.value, ast.Await) else node.value
            if isinstance(call, ast.Call):
                yield node, "pass"
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            yield node.test, f"(not ({ast.unparse(node.test)}))"


def _other_expression(node: ast.expr) -> str | None:
    """Return a comparison, a condition or a number with another result."""
    if isinstance(node, ast.Compare):
        other = copy.copy(node)
        other.ops = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        return f"({ast.unparse(other)})"
    if isinstance(node, ast.BoolOp):
        return f"({ast.unparse(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))})"
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return str(not node.value) if isinstance(node.value, bool) else str(node.value + 1)
    return None


def _run_code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes that run: no annotations, nothing for type checkers only, no logging."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_without_effect(child):
                yield child
                yield from _run_code(child)


def _is_without_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    is_log = isinstance(node, ast.Expr) and ast.unparse(node).startswith(("_log.", "logging."))
    return is_log or isinstance(node, ast.JoinedStr)


def choose(mutants: list[Mutant], most: int, seed: int) -> list[Mutant]:
    """Return at most `most` of them, the same for one seed."""
    return sorted(Random(seed).sample(mutants, min(most, len(mutants))), key=lambda mutant: mutant.start)


def copy_tree(target: Path) -> None:
    """Copy the files that git knows, and those that it would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def passes(tree: Path, tests: tuple[str, ...], patience: float | None = None) -> bool:
    """Whether these tests pass in this tree, within `patience` seconds."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    # Before the path at which the environment knows the packages, which is the tree that was copied.
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    process = subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(patience) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End also the processes that the tests started: with a change they may not end them."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def survivors(tree: Path, guarded: Guarded, mutants: list[Mutant]) -> list[Mutant]:
    """Return the mutants that no test noticed. Raises RuntimeError where tests fail without a change."""
    file = tree / guarded.module
    source = file.read_text(encoding="utf-8")
    began = time.monotonic()
    if not passes(tree, guarded.tests):
        raise RuntimeError(f"The tests of {guarded.name} fail without a change.")
    patience = (time.monotonic() - began) * PATIENCE + GRACE
    unnoticed: list[Mutant] = []
    for mutant in mutants:
        file.write_text(mutant.apply(source), encoding="utf-8")
        # Python takes old bytecode for fresh if the source has the same size and the same second of change.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        if passes(tree, guarded.tests, patience):
            unnoticed.append(mutant)
    file.write_text(source, encoding="utf-8")
    Path(cache_from_source(str(file))).unlink(missing_ok=True)
    return unnoticed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.frame.mutation")
    parser.add_argument("--modules", nargs="+", metavar="NAME", choices=[guarded.name for guarded in guarded_modules()])
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    noticed = total = 0
    failed = False
    with tempfile.TemporaryDirectory(prefix="desktop-agent-mutants-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        for guarded in guarded_modules():
            if options.modules and guarded.name not in options.modules:
                continue
            source = (ROOT / guarded.module).read_text(encoding="utf-8")
            mutants = choose(mutants_of(source), options.mutants, options.seed)
            try:
                unnoticed = survivors(tree, guarded, mutants)
            except RuntimeError as error:
                failed = True
                print(error, flush=True)
                continue
            noticed, total = noticed + len(mutants) - len(unnoticed), total + len(mutants)
            print(f"{guarded.name}: {len(mutants) - len(unnoticed)} / {len(mutants)} noticed", flush=True)
            for mutant in unnoticed:
                print(f"    {guarded.module}:{mutant}", flush=True)
    print(f"all: {noticed} / {total} noticed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
