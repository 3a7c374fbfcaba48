"""Names of the private language that this program once had do not come back."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.frame.budgets import ROOT, sources

RETIRED = frozenset(
    line
    for line in Path(__file__).with_name("retired_names.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def names(root: Path) -> Iterator[tuple[str, str]]:
    """Each folder, module, class and function with its place."""
    for source in sources(root):
        path = Path(source.path)
        yield from ((part, source.path) for part in (*path.parent.parts, path.stem))
        for node in source.walk():
            if isinstance(node, DEFINITIONS):
                yield node.name, f"{source.path}:{node.lineno}"


def test_no_retired_name_is_used() -> None:
    all_names = list(names(ROOT))
    assert len(all_names) > 5000
    assert [f"{where}: {name} is retired, use the field's word" for name, where in all_names if name in RETIRED] == []


def test_a_retired_name_is_seen(tmp_path: Path) -> None:
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "aftermath.py").write_text("class Standing:\n    def furnish(self): ...\n")
    assert {name for name, _ in names(tmp_path) if name in RETIRED} == {"aftermath", "Standing", "furnish"}
