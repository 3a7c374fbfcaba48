"""The modules, files and links that the documents name exist."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import desktop_agent

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("**/*.md") if "api" not in path.parts),
)
MODULE = re.compile(r"`((?:desktop_agent|ui)(?:\.\w+)+)`")
FILE = re.compile(r"`((?:desktop_agent|ui|tests|packaging|docs|resources)/[\w/.-]+)`")
PLACED = re.compile(r"`(\w+)`,? in `((?:desktop_agent|ui)(?:\.\w+)+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def exists_as_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def source_of(name: str) -> str:
    path = ROOT / name.replace(".", "/")
    files = [path.with_suffix(".py")] if path.with_suffix(".py").is_file() else sorted(path.glob("**/*.py"))
    return "".join(file.read_text(encoding="utf-8") for file in files)


def named_modules(text: str) -> set[str]:
    return set(MODULE.findall(text))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_modules_files_and_links_exist(document: str) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    assert [name for name in sorted(named_modules(text)) if not exists_as_module(name)] == []
    assert [name for name in FILE.findall(text) if not (ROOT / name).exists()] == []
    assert [name for name in LINK.findall(text) if not (path.parent / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_name_stands_in_the_module_that_is_said_to_have_it(document: str) -> None:
    placed = PLACED.findall((ROOT / document).read_text(encoding="utf-8"))
    assert [pair for pair in placed if not re.search(rf"\b{pair[0]}\b", source_of(pair[1]))] == []


def test_the_reader_of_names_reads() -> None:
    assert len(named_modules((ROOT / "docs/glossary.md").read_text(encoding="utf-8"))) >= 20
    assert len(named_modules((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))) >= 20
    assert len(DOCUMENTS) >= 25
    assert not exists_as_module("desktop_agent.types.nothing")


def test_every_room_is_on_the_architecture_page_and_in_the_picture() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    texts = ElementTree.parse(ROOT / "docs/floors.svg").iter("{http://www.w3.org/2000/svg}text")
    drawn = {(text.text or "").rpartition(".")[2] for text in texts}
    rooms = [init.parent for package in ("desktop_agent", "ui") for init in (ROOT / package).glob("*/__init__.py")]
    assert len(rooms) >= 15
    for room in rooms:
        assert f"`{room.parent.name}.{room.name}`" in page
        assert room.name in drawn


def test_the_architecture_is_read_in_five_minutes() -> None:
    assert len((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split()) <= 1200


def test_a_person_reads_the_changes_of_a_version_in_five_minutes() -> None:
    versions = re.split(r"^(?=## \[)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert versions[0].startswith("## [Unreleased]")
    assert [part.splitlines()[0] for part in versions if len(part.split()) > 1300] == []


def test_decisions_are_numbered_dated_and_without_gaps() -> None:
    files = sorted((ROOT / "docs/adr").glob("*.md"))
    assert [file.name[:4] for file in files] == [f"{number:04}" for number in range(1, len(files) + 1)]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert re.match(rf"# {file.name[:4]}: .+\n\nDate: \d{{4}}-\d\d-\d\d\n", text)
        assert [part for part in ("## Context", "## Decision", "## Consequences") if part not in text] == [], file.name
        assert len(text.split()) <= 900, file.name


def test_a_word_has_one_meaning() -> None:
    rows = re.findall(r"^\| ([\w -]+) \| ", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = [row for row in rows if row != "word"]
    assert len(words) == len(set(words))
    assert 20 <= len(words) <= 40


def test_dependencies_are_explained_and_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    decisions = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/adr").glob("*.md"))
    extras = project["project"]["optional-dependencies"]
    lines = [*project["project"]["dependencies"], *(line for name in ("window", "mcp", "web") for line in extras[name])]
    names = [re.split(r"[<>=~ ]", line)[0] for line in lines]
    assert len(names) > 20
    assert [name for name in names if f"**{name}**" not in decisions] == []
    for lock in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert "://" not in text
        pinned = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
        assert [entry.splitlines()[0] for entry in pinned if "--hash=sha256:" not in entry] == []
        locked = {entry.split("==")[0].lower() for entry in pinned}
        assert [name for name in names if name.lower() not in locked] == []
    tools = [re.split(r"[<>=~ ]", line)[0] for line in project["dependency-groups"]["dev"]]
    assert [name for name in tools if f"\n{name}==" not in text] == []


@pytest.mark.exhaustive(
    "tests/desktop_agent/test_names.py::test_checkers_and_the_program_find_the_same_names_in_the_same_places"
)
def test_the_reference_is_made_and_has_every_public_name(tmp_path: Path) -> None:
    command = re.search(r"^\t@\$\(BIN\)/python (-m pdoc .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert command is not None
    pdoc = [sys.executable, *command[1].replace("docs/api", str(tmp_path)).split()]
    subprocess.run(pdoc, cwd=ROOT, check=True, capture_output=True)
    page = (tmp_path / "desktop_agent.html").read_text(encoding="utf-8")
    assert [name for name in desktop_agent.__all__ if f'id="{name}"' not in page] == []
