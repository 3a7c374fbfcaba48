"""Which tests hold each promise: reads their names, writes docs/contract-coverage.md.

python -m tests.contract.coverage
"""

import ast
from pathlib import Path

from tests.contract.rows import SECTIONS, Row

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contract-coverage.md"
_HEAD = """# What is promised, and which tests hold it

Written by `python -m tests.contract.coverage` from the names of the tests; a test fails while it is not current.
Many more tests hold parts of these promises: this page names those that were written for them.
"""


def tests_by_row() -> dict[str, list[str]]:
    """Row name → tests, as file and function. Raises AssertionError for a test that belongs to no row."""
    tests: dict[str, list[str]] = {row.name: [] for section in SECTIONS for row in section.rows}
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        if path.name == "test_coverage.py":
            continue
        for name in _functions(path):
            row = name.removeprefix("test_").partition("__")[0]
            assert row in tests, f"{path.name}: {name} belongs to no row; a name is test_<row>__<what>"
            tests[row].append(f"{path.relative_to(ROOT / 'tests').as_posix()}::{name}")
    return tests


def page() -> str:
    """The document."""
    tests = tests_by_row()
    parts = [_HEAD]
    for section in SECTIONS:
        parts.append(f"\n## {section.title}\n\n| row | promise | tests |\n|---|---|---|\n")
        parts += [_line(row, tests[row.name]) for row in section.rows]
    return "".join(parts)


def _line(row: Row, tests: list[str]) -> str:
    listed = "<br>".join(f"`{test}`" for test in tests) or "**none**"
    return f"| {row.name} | {row.promise} | {listed} |\n"


def _functions(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.name for node in ast.walk(tree) if isinstance(node, kinds) and node.name.startswith("test_")]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
