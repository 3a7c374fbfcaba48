"""The short form leaves out exactly the marked tests, and slow files run first."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.frame.check import ROOT
from tests.frame.selection import OPTION, few, slow_files

SOURCE = """
import pytest
from hypothesis import settings
from tests.frame.examples import examples
from tests.frame.selection import few

def test_always(): pass

@pytest.mark.exhaustive("test_always")
def test_long(): pass

@pytest.mark.parametrize("number", few(range(6), 2, "two of them"))
def test_some(number): pass

@pytest.mark.parametrize("drawn", [examples(200), examples(12), examples(4), settings().max_examples])
def test_examples(drawn): pass
"""
ALWAYS = ["test_always", "test_some[0]", "test_some[3]"]
LONG = ["test_long", "test_some[1]", "test_some[2]", "test_some[4]", "test_some[5]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selection")
    (folder / "test_it.py").write_text(SOURCE)
    (folder / "conftest.py").write_text("from tests.frame.examples import repeat_examples\nrepeat_examples()\n")
    return folder


def collected(folder: Path, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "tests.frame.selection", "-p", "no:xdist"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    names = [line.partition("::")[2] for line in run.stdout.splitlines() if "::" in line]
    assert names, run.stdout + run.stderr
    return names


def test_a_push_leaves_out_what_is_marked_and_draws_fewer_examples(folder: Path) -> None:
    drawn = [f"test_examples[{number}]" for number in (25, 10, 4, 12)]
    assert collected(folder, ".") == [*ALWAYS, *drawn]


def test_the_long_form_has_all(folder: Path) -> None:
    drawn = [f"test_examples[{number}]" for number in (200, 12, 4, 100)]
    assert sorted(collected(folder, ".", OPTION)) == sorted([*ALWAYS, *LONG, *drawn])


def test_who_names_one_gets_it(folder: Path) -> None:
    assert collected(folder, "test_it.py::test_long") == ["test_long"]


def test_a_profile_that_is_named_is_taken(folder: Path) -> None:
    assert "test_examples[200]" in collected(folder, ".", "--hypothesis-profile=all")


def test_few_of_many_are_at_equal_distances_and_all_of_few_are_all() -> None:
    def kept(count: int, most: int) -> list[int]:
        return [case.values[0] for case in few(range(count), most, "others") if not case.marks]

    assert kept(10, 3) == [0, 3, 6]
    assert kept(3, 5) == [0, 1, 2]
    assert few([("a", 1)], 1, "others")[0].values == ("a", 1)


def exhaustive_marks() -> Iterator[tuple[Path, str]]:
    """Yield each argument of an `exhaustive` mark with the file of the mark."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.exhaustive" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.exhaustive":
                yield from ((path, str(ast.literal_eval(named))) for named in node.args)


@cache
def functions_of(path: Path) -> dict[str, str]:
    """Return the tests of a file, each with its decorators."""
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: " ".join(map(ast.unparse, node.decorator_list)) for node in functions}


def test_what_is_left_out_names_a_test_that_each_push_runs() -> None:
    marks = list(exhaustive_marks())
    wrong: list[str] = []
    for path, named in marks:
        file, _, test = re.split(r"[,:](?= )", named)[0].rpartition("::")
        if not file and test.endswith(".py"):
            file, test = test, ""
        functions = functions_of(ROOT / file if file else path)
        is_there = test in functions if test else bool(functions)
        runs = [decorators for name, decorators in functions.items() if name.startswith("test_") and test in ("", name)]
        if not is_there or all("exhaustive" in decorators for decorators in runs):
            wrong.append(f"{path.relative_to(ROOT)}: {named}")
    assert len(marks) > 25
    assert not wrong, "name a test of the file, or FILE or FILE::TEST, that a push runs:\n" + "\n".join(wrong)


def test_the_slowest_file_begins(request: pytest.FixtureRequest) -> None:
    files = list(dict.fromkeys(item.nodeid.partition("::")[0] for item in request.session.items))
    slow = slow_files()
    seconds = [slow.get(file, 0) for file in files]
    assert seconds == sorted(seconds, reverse=True)
