"""What type checkers see of the library: its names, its signatures, and what they take besides what they keep."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel, SecretStr

import desktop_agent
from tests.frame.selection import few

ROOT = Path(__file__).parents[2]
TYPED = Path(__file__).parent / "typed"
EXAMPLES = ROOT / "docs" / "examples"
Errors = set[tuple[str, int]]


def mypy(folder: Path) -> Errors:
    """File and line of each error. From another folder, so that the package is found as an installed one is."""
    command = (sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", ROOT / ".mypy_cache", folder)
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert said.returncode in {0, 1}, said.stdout + said.stderr
    return {(name, int(line)) for name, line in re.findall(r"^(.+?):(\d+): error:", said.stdout, re.MULTILINE)}


def pyright(folder: Path) -> Errors:
    """The same in pyright's strict mode; what basedpyright adds to it is off there."""
    settings = {"include": ["."], "typeCheckingMode": "strict", "venvPath": str(ROOT), "venv": ".venv"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = (sys.executable, "-m", "basedpyright", "--outputjson")
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = json.loads(said.stdout)
    assert found["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))
    errors = [each for each in found["generalDiagnostics"] if each["severity"] == "error"]
    return {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in errors}


@pytest.fixture(scope="module", params=few([pyright, mypy], 1, "the other checker"))
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    """What a checker says of all programs here, in a folder of their own."""
    folder = tmp_path_factory.mktemp("programs")
    for program in (*TYPED.glob("*.py"), *EXAMPLES.glob("*.py")):
        shutil.copy(program, folder)
    (folder / "made.py").write_text(made_program())
    return request.param(folder)


def test_each_mistake_is_found_and_nothing_else(errors: Errors) -> None:
    lines = (TYPED / "wrong.py").read_text(encoding="utf-8").splitlines()
    mistakes = {("wrong.py", number) for number, line in enumerate(lines, 1) if line.endswith("# error")}
    assert len(mistakes) >= 15
    assert {error for error in errors if error[0] != "made.py"} == mistakes


def test_what_is_made_fitting_when_it_runs_is_no_error_before(errors: Errors) -> None:
    wrong = {number for name, number in errors if name == "made.py"}
    assert [line for number, line in enumerate(made_program().splitlines(), 1) if number in wrong] == []


def made_program() -> str:
    calls = list(lines_with_lists())
    assert len(calls) >= 100
    program = "from typing import Any\nimport desktop_agent as da\n\n"
    program += "def make(some: Any, listed: list[Any], words: str) -> None:\n"
    return program + "".join(f"    {call}\n" for call in calls)


def models() -> Iterator[type[BaseModel]]:
    for name in desktop_agent.__all__:
        value = getattr(desktop_agent, name)
        if isinstance(value, type) and issubclass(value, BaseModel):
            yield value


def lines_with_lists() -> Iterator[str]:
    """Each field of each model, given a list where it is a tuple and words where it is a secret: it takes them."""
    for model in models():
        required = [name for name, field in model.model_fields.items() if field.is_required()]
        for name, field in model.model_fields.items():
            options = (field.annotation, *get_args(field.annotation))
            is_tuple = any(get_origin(option) is tuple for option in options)
            given = "words" if SecretStr in options else "listed" if is_tuple else "some"
            others = [f"{other}=some" for other in required if other != name]
            if name != "type":
                yield f"da.{model.__name__}({', '.join([*others, f'{name}={given}'])})"
