"""PyInstaller's recipe lists every module, also those imported late, and every resource."""

import ast
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("PyInstaller", reason="the packaging tools are not installed")

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "packaging" / "desktop-agent.spec"
PACKAGES = ("desktop_agent", "ui", "resources")


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    """The arguments that the recipe gives to PyInstaller's Analysis."""
    given: dict[str, Any] = {}

    def analysis(scripts: list[str], **more: Any) -> SimpleNamespace:
        given.update(more, scripts=scripts)
        return SimpleNamespace(binaries=[], datas=[], pure=None, scripts=scripts)

    def nothing(*_: Any, **__: Any) -> None:
        return None

    names: dict[str, Any] = dict.fromkeys(("PYZ", "EXE", "COLLECT", "BUNDLE"), nothing)
    names |= {"SPECPATH": str(SPEC.parent), "Analysis": analysis}
    exec(compile(SPEC.read_text(encoding="utf-8"), str(SPEC), "exec"), names)
    return given


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that a statement imports; of `from a import b` also a.b where that is a module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        for alias in node.names:
            if is_module(f"{node.module}.{alias.name}"):
                yield f"{node.module}.{alias.name}"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "import_module":
        yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))


@cache
def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@cache
def imports() -> tuple[set[str], set[str]]:
    """Return the modules that the packages import anywhere, and those imported late: in a function."""
    everywhere, late = set[str](), set[str]()
    for file in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        waiting: list[tuple[ast.AST, bool]] = [(ast.parse(file.read_text(encoding="utf-8")), False)]
        while waiting:
            node, is_late = waiting.pop()
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
                names = set(imported(node))
                everywhere |= names
                late |= names if is_late else set()
            is_late = is_late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            waiting += ((child, is_late) for child in ast.iter_child_nodes(node))
    return everywhere, late


def test_the_reader_of_imports_reads() -> None:
    everywhere, late = imports()
    assert {"httpx", "keyring", "PIL.Image", "ui.app", "desktop_agent.tools.builtin_tools"} <= late
    assert len(everywhere) > 200


def test_our_own_modules_all_go_along(recipe: dict[str, Any]) -> None:
    files = [file for package in ("desktop_agent", "ui") for file in (ROOT / package).rglob("*.py")]
    names = {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files}
    assert len(names) > 150
    assert names - set(recipe["hiddenimports"]) == set()


def test_what_is_imported_late_exists_and_is_not_left_out(recipe: dict[str, Any]) -> None:
    everywhere, late = imports()
    assert [name for name in sorted(late) if not is_module(name)] == []
    left_out = tuple(f"{name}." for name in recipe["excludes"])
    assert [name for name in sorted(everywhere) if f"{name}.".startswith(left_out)] == []


@pytest.mark.parametrize(
    "name",
    [
        "certifi",
        "hunspell",
        "keyring.backends.SecretService",
        "keyring.backends.kwallet",
        "keyring.backends.macOS",
        "keyring.backends.Windows",
        "pygments.lexers.python",
        "pygments.lexers.rust",
        "desktop_agent.markdown.code_highlighting",
        "ui.transcript.blocks.code.highlighter_worker",
        "ui.transcript.blocks.diagram_worker",
    ],
)
def test_what_is_found_by_name_goes_along(recipe: dict[str, Any], name: str) -> None:
    assert name in recipe["hiddenimports"]


def test_every_resource_goes_along(recipe: dict[str, Any]) -> None:
    collected = {(Path(source), target) for source, target in recipe["datas"]}
    files = [file for file in (ROOT / "resources").rglob("*") if file.is_file()]
    files = [file for file in files if file.suffix != ".py" and "__pycache__" not in file.parts]
    assert len(files) > 30
    assert [file for file in files if (file, str(file.parent.relative_to(ROOT))) not in collected] == []


def test_the_table_of_models_goes_along(recipe: dict[str, Any]) -> None:
    collected = {(Path(source), target) for source, target in recipe["datas"]}
    files = [
        file
        for file in (ROOT / "desktop_agent").rglob("*")
        if file.is_file() and file.suffix not in (".py", ".pyc", ".typed")
    ]
    assert "shipped.toml" in {file.name for file in files}
    assert [file for file in files if (file, str(file.parent.relative_to(ROOT))) not in collected] == []


@pytest.mark.parametrize("name", ["ziafont", "ziamath", "latex2mathml", "jsonschema_specifications"])
def test_data_of_libraries_goes_along(recipe: dict[str, Any], name: str) -> None:
    (folder,) = importlib.util.find_spec(name).submodule_search_locations
    files = {file for file in Path(folder).rglob("*") if file.is_file() and file.suffix not in (".py", ".pyc")}
    collected = {Path(source) for source, _ in recipe["datas"]}
    assert files
    assert [str(file) for file in files if file not in collected and file.name != "py.typed"] == []


def test_the_metadata_that_is_asked_for_goes_along(recipe: dict[str, Any]) -> None:
    targets = {target for _, target in recipe["datas"]}
    for name in ("desktop_agent", "keyring"):
        assert any(target.lower().replace("-", "_").startswith(name) for target in targets), name
