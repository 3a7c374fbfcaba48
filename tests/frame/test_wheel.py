"""The wheel: the runtime works alone, a missing extra says how to install it, and all top-level names are ours."""

import os
import re
import subprocess
import sys
import zipfile
from email import message_from_string
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
EXTRAS = {
    "window": {
        "pyside6-essentials",
        "qasync",
        "markdown-it-py",
        "mdit-py-plugins",
        "ziamath",
        "pygments",
        "pypdfium2",
        "chunspell",
    },
    "mcp": {"mcp", "mcp-types", "httpx2", "anyio"},
    "web": {"selectolax", "beautifulsoup4", "markdownify"},
    "diagrams": {"mermaidx"},
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def requirements(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_string(archive.read(name).decode())
    return [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]


def needs_no_extra(requirement: Requirement) -> bool:
    """Whether the requirement holds here without any extra."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install desktop-agent` makes of an empty environment, with the packages that are installed here."""
    folder = tmp_path_factory.mktemp("site")
    command = ("install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", folder, wheel)
    subprocess.run((sys.executable, "-m", "pip", *command), check=True, capture_output=True)
    waiting = [requirement.name for requirement in requirements(wheel) if needs_no_extra(requirement)]
    known: set[str] = set()
    while waiting:
        name = normal(waiting.pop())
        if name in known:
            continue
        known.add(name)
        installed = distribution(name)
        needed = filter(needs_no_extra, map(Requirement, installed.requires or ()))
        waiting += [requirement.name for requirement in needed]
        for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(installed.locate_file(top))))
    assert "httpx" in known
    assert not known & set.union(*EXTRAS.values()) - {"anyio"}  # httpx needs it too
    return folder


def run(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with this environment and no other: -S leaves the tests' own out."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONIOENCODING": "utf-8"}
    command = (sys.executable, "-S", "-P", *words)
    return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True, check=False)


def test_its_names_are_ours_and_everything_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {
        "desktop_agent",
        "desktop_agent_window",
    }
    command = "desktop_agent_window/__init__.py"
    assert {"desktop_agent/py.typed", command, "desktop_agent_window/ui/__main__.py"} <= set(names)
    places = {"desktop_agent": "", "ui": "desktop_agent_window/", "resources": "desktop_agent_window/"}
    for package, place in places.items():
        files = [file for file in (ROOT / package).rglob("*") if file.is_file() and "__pycache__" not in file.parts]
        expected = {place + file.relative_to(ROOT).as_posix() for file in files}
        assert expected - {"desktop_agent_window/ui/launcher.py"} <= set(names)  # that is the command
    assert [name for name in names if "__pycache__" in name] == []


def test_it_asks_for_the_runtime_alone_and_extras_for_the_rest(wheel: Path) -> None:
    base = {normal(requirement.name) for requirement in requirements(wheel) if needs_no_extra(requirement)}
    optional = [requirement for requirement in requirements(wheel) if not needs_no_extra(requirement)]
    assert "pydantic" in base
    assert not base & set.union(*EXTRAS.values())
    for extra, names in EXTRAS.items():
        more = [need for need in optional if need.marker and need.marker.evaluate({"extra": extra})]
        assert {normal(requirement.name) for requirement in more} == names


@pytest.mark.exhaustive("tests/desktop_agent/api/test_ask.py::test_the_demo_answers")
def test_the_runtime_answers_alone(site: Path) -> None:
    done = run(site, "-m", "desktop_agent", "ask", "--demo", "Hello")
    assert (done.returncode, "demo model" in done.stdout) == (0, True), done.stderr


def test_what_lacks_its_extra_says_how_to_install_it(site: Path) -> None:
    code = """
import asyncio
from desktop_agent import ExtraMissing
from desktop_agent.mcp.lifecycle import load_library
from desktop_agent.tools.web.pages import WebPageReader
for work in (load_library(), WebPageReader().read("<p>Hello", "http://example.org/")):
    try:
        asyncio.run(work)
    except ExtraMissing as error:
        print(error, error.remedy)
"""
    done = run(site, "-c", code)
    assert done.stdout.splitlines() == [
        "A server of tools (MCP) needs parts that are not installed. Run pip install 'desktop-agent[mcp]'.",
        "Reading pages of the web needs parts that are not installed. Run pip install 'desktop-agent[web]'.",
    ], done.stderr


PROGRAM = "import sys; from desktop_agent_window import main; sys.exit(main())"


def test_the_program_says_how_to_get_a_window_and_its_version_without_one(site: Path) -> None:
    done = run(site, "-c", PROGRAM)
    usage, how = done.stderr.splitlines()
    assert (done.returncode, usage.split(" [")[0]) == (2, "usage: desktop-agent ask")
    assert how == "The window comes with an extra. Run pip install 'desktop-agent[window]', then desktop-agent."
    assert run(site, "-c", PROGRAM, "--version").stdout.startswith("desktop-agent ")


def test_the_window_comes_out_of_the_wheel_where_its_parts_are(site: Path, tmp_path: Path) -> None:
    # PySide6 is only searched for, not imported: --version ends before the first window.
    (tmp_path / "PySide6").mkdir()
    (tmp_path / "PySide6" / "__init__.py").touch()
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r})\n"
        + """
from desktop_agent_window import main
try:
    main()
except SystemExit:
    import resources
    print(sys.modules["ui"].__file__, resources.resource_path("icons"))
"""
    )
    done = run(site, "-c", code, "--version")
    assert done.stdout.count(str(site / "desktop_agent_window")) == 2, done.stderr


def test_the_runtime_never_starts_the_window(site: Path, tmp_path: Path) -> None:
    """Its own command says how to get the window, even where the window is installed too."""
    (tmp_path / "PySide6").mkdir()
    (tmp_path / "PySide6" / "__init__.py").touch()
    code = f"""
import sys; sys.path.append({str(tmp_path)!r})
from desktop_agent import __main__ as runtime
print([name for name in vars(runtime) if not name.startswith("_") and callable(vars(runtime)[name])])
print(runtime.main([]), "ui" in sys.modules)
"""
    assert run(site, "-c", code).stdout.splitlines() == ["['Callable', 'Sequence', 'main']", "2 False"]


@pytest.mark.exhaustive("tests/desktop_agent/api/test_ask.py::test_the_demo_answers")
def test_the_command_asks_without_the_window(site: Path) -> None:
    done = run(site, "-c", f"{PROGRAM}", "ask", "--demo", "Hello")
    assert (done.returncode, "demo model" in done.stdout) == (0, True), done.stderr


def test_in_a_checkout_the_command_takes_the_window_that_lies_there() -> None:
    # An editable install has the command alone, and no copy of the window, which would become outdated.
    import desktop_agent_window

    folder = Path(desktop_agent_window.__file__).parent
    assert {entry.name for entry in folder.iterdir()} <= {"__init__.py", "__pycache__"}
    command = Path(sys.executable).parent / "desktop-agent"
    done = subprocess.run((command, "--version"), capture_output=True, text=True, check=False)
    assert done.stdout.startswith("desktop-agent "), done.stderr
