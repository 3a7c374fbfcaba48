"""`make check` runs the tests that belong to a change, and leaves none of them out."""

from pathlib import Path

import pytest

from tests.frame.budgets import ROOT
from tests.frame.check import ALL, ALWAYS, DOCUMENTS, LINTERS, MOST_FOLDERS, ROOM, chosen, measured
from tests.frame.selection import slow_files

MODULES = ("a", "b/c", "b/d")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Tests of some modules, in files that mirror the modules, and a slow one in each folder."""
    for module in MODULES:
        folder = tmp_path / "tests/desktop_agent" / module
        folder.mkdir(parents=True)
        for name in ("test_one.py", "test_two.py", "test_slow.py"):
            (folder / name).touch()
    for place in ALWAYS:
        file = tmp_path / (place if place.endswith(".py") else f"{place}/test_it.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path


SLOW = {f"tests/desktop_agent/{module}/test_slow.py": ROOM + 1 for module in MODULES}
ALWAYS_RUN = ["tests/data_folder/test_it.py", "tests/frame/test_stranger.py"]


def run_for(tree: Path, *changed: str) -> list[str]:
    files = chosen(changed, SLOW, tree)
    assert all((tree / file).exists() for file in files if file != DOCUMENTS)
    return [file.removeprefix("tests/desktop_agent/") for file in files if file not in ALWAYS_RUN]


EVERYTHING = [f"{module}/test_{name}.py" for module in MODULES for name in ("one", "two")]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("desktop_agent/a/one.py", ["a/test_one.py", "a/test_two.py"]),
        ("desktop_agent/a/untested.py", ["a/test_one.py", "a/test_two.py"]),
        ("desktop_agent/a/deeper/one.py", ["a/test_one.py", "a/test_two.py"]),
        ("desktop_agent/a/slow.py", ["a/test_one.py", "a/test_slow.py", "a/test_two.py"]),
        ("desktop_agent/a/table.toml", ["a/test_one.py", "a/test_two.py"]),
        ("tests/desktop_agent/b/c/test_slow.py", ["b/c/test_slow.py"]),
        ("tests/desktop_agent/b/c/stage.py", ["b/c/test_one.py", "b/c/test_two.py"]),
        ("docs/architecture.md", [DOCUMENTS]),
        ("README.md", [DOCUMENTS]),
        ("desktop_agent/untested.py", EVERYTHING),
        ("tests/recordings/one.sse", EVERYTHING),
        ("tests/conftest.py", EVERYTHING),
        ("pyproject.toml", EVERYTHING),
        ("tests/desktop_agent/a/test_gone.py", EVERYTHING),
    ],
)
def test_the_tests_of_a_change(changed: str, expected: list[str], tree: Path) -> None:
    assert run_for(tree, changed) == expected


def test_nothing_and_much_are_everything(tree: Path) -> None:
    assert run_for(tree) == EVERYTHING
    for number in range(MOST_FOLDERS):
        folder = tree / f"tests/desktop_agent/m{number}"
        folder.mkdir()
        (folder / "test_one.py").touch()
    few = [f"desktop_agent/m{number}/one.py" for number in range(MOST_FOLDERS)]
    assert run_for(tree, *few) == [f"m{number}/test_one.py" for number in range(MOST_FOLDERS)]
    assert set(run_for(tree, *few, "desktop_agent/a/one.py")) > set(EVERYTHING)


def test_slow_files_of_a_change_run_while_there_is_room(tree: Path) -> None:
    slow = dict.fromkeys(SLOW, ROOM / 2) | {"tests/desktop_agent/b/c/test_two.py": ROOM / 2 + 1}
    files = chosen(["desktop_agent/b/c/one.py"], slow, tree)
    assert [file for file in files if file in slow] == ["tests/desktop_agent/b/c/test_slow.py"]
    assert not {*chosen([], slow, tree)} & slow.keys()


def test_what_is_named_is_there() -> None:
    assert [file for file in (*slow_files(), DOCUMENTS, *ALL) if not (ROOT / file).exists()] == []


def test_the_linters_are_those_of_make_lint() -> None:
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0].splitlines()
    commands = [line.partition('" ')[2].removeprefix("--show ").split() for line in lines if "step.sh" in line]
    assert [[word.removeprefix("$(BIN)/") for word in command] for command in commands] == [
        *map(list, LINTERS.values())
    ]


def test_slow_files_are_found_in_what_pytest_says() -> None:
    log = "1.50s call     tests/a.py::test_x[1]\n 0.60s setup    tests/a.py::test_y\n1.00s call tests/b.py::test_z\n"
    assert measured(log).splitlines()[1:] == ["[seconds]", '"tests/a.py" = 2']
