"""The runner of mutants makes the changes that it names, and reports those that no test notices."""

import ast
from pathlib import Path

import pytest

from tests.frame.mutation import ROOT, Guarded, choose, guarded_modules, mutants_of, survivors

SOURCE = '''
import logging
from typing import TYPE_CHECKING

_log = logging.getLogger("ä")
if TYPE_CHECKING:
    from os import PathLike


def pick(numbers: list[int], least: "int | None" = None) -> list[int]:
    """Return 7 of them."""
    _log.info("%d", 3)
    numbers.sort()
    if least is None and len(numbers) > 1:
        return numbers[1:]
    return [number for number in numbers if number >= least]
'''
CHANGES = {
    "numbers.sort() -> pass",
    "least is None -> (least is not None)",
    "len(numbers) > 1 -> (len(numbers) >= 1)",
    "least is None and len(numbers) > 1 -> (least is None or len(numbers) > 1)",
    "least is None and len(numbers) > 1 -> (not (least is None and len(numbers) > 1))",
    "1 -> 2",
    "return numbers[1:] -> return None",
    "number >= least -> (number > least)",
    "return [number for number in numbers if number >= least] -> return None",
}


def test_each_kind_of_change_is_made_and_what_does_not_run_is_let_be() -> None:
    mutants = mutants_of(SOURCE)
    assert {f"{mutant.before} -> {mutant.after}" for mutant in mutants} == CHANGES
    for mutant in mutants:
        assert mutant.apply(SOURCE) != SOURCE
        ast.parse(mutant.apply(SOURCE))


def test_a_seed_chooses_the_same_again() -> None:
    mutants = mutants_of(SOURCE)
    assert choose(mutants, 4, 1) == choose(mutants, 4, 1) != choose(mutants, 4, 2)
    assert len(choose(mutants, 99, 1)) == len(mutants)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pick.py").write_text(SOURCE)
    return tmp_path


def judge(tree: Path, test: str) -> set[str]:
    (tree / "test_pick.py").write_text(f"from pick import pick\n\ndef test_it():\n    {test}\n")
    # One only: each takes a process of pytest.
    one = [mutant for mutant in mutants_of(SOURCE) if mutant.before == "numbers.sort()"]
    unnoticed = survivors(tree, Guarded("pick", "pick.py", ("test_pick.py",)), one)
    assert (tree / "pick.py").read_text() == SOURCE
    return {mutant.before for mutant in unnoticed}


def test_what_no_test_notices_is_told(tree: Path) -> None:
    assert "numbers.sort()" in judge(tree, "assert pick([1, 2, 3]) == [2, 3]")
    assert "numbers.sort()" not in judge(tree, "assert pick([2, 3, 1]) == [2, 3]")


def test_tests_that_fail_by_themselves_are_no_judges(tree: Path) -> None:
    with pytest.raises(RuntimeError, match="fail without a change"):
        judge(tree, "assert False")


def test_all_that_is_named_is_there() -> None:
    assert len(guarded_modules()) >= 12
    for guarded in guarded_modules():
        assert [name for name in (guarded.module, *guarded.tests) if not (ROOT / name).exists()] == []
        assert len(mutants_of((ROOT / guarded.module).read_text(encoding="utf-8"))) >= 20, guarded.name
