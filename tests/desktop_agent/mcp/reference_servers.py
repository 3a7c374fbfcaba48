"""Servers written by others, taken once from npm and PyPI and kept outside of the project."""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.frame.node import NODE, NPM

PACKAGES = tuple(f"@modelcontextprotocol/server-{name}@2026.8.31" for name in ("everything", "filesystem", "memory"))
PYPI = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")
PATIENCE = 300


def _kept(name: str) -> Path:
    """A folder of this user's alone: what lies there is run."""
    folder = Path(tempfile.gettempdir(), f"desktop-agent-servers-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    assert folder.stat().st_uid == os.getuid()
    assert folder.stat().st_mode & 0o077 == 0
    return folder / name


@cache
def _fetched(name: str) -> str:
    """Install what the folder `name` holds, unless it is there; why it cannot be had, or nothing."""
    folder = _kept(name)
    if (folder / "complete").exists():
        return ""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-fetch-", dir=folder.parent) as made:
        new = Path(made, "new")
        new.mkdir()
        try:
            for command in _commands(name, new, made):
                subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE, cwd=made)
        except (subprocess.SubprocessError, OSError) as error:
            return f"the servers of {name} cannot be had: {error}"
        (new / "complete").touch()
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    return ""


def _commands(name: str, folder: Path, made: str) -> list[list[str]]:
    if name.startswith("package-"):
        return _npm(folder, made, (name.removeprefix("package-").replace("+", "/"),))
    return _npm(folder, made) if name.startswith("npm") else _pypi(folder)


def _npm(folder: Path, made: str, packages: tuple[str, ...] = PACKAGES) -> list[list[str]]:
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", f"{made}/cache"]
    return [[*NPM, "install", *quiet, "--prefix", str(folder), *packages]]


def _pypi(folder: Path) -> list[list[str]]:
    # The packages alone: scripts of an environment name the folder where it was made.
    return [[sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *PYPI]]


def node_server(name: str, *words: str) -> list[str]:
    """The command of one from npm; the test is skipped where it cannot be had."""
    if why := _fetched("npm-2026.8.31"):
        pytest.skip(why)
    script = _kept("npm-2026.8.31") / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    return [NODE, str(script), *words]


def python_server(name: str, *words: str) -> list[str]:
    """The command of one from PyPI; the test is skipped where it cannot be had."""
    if why := _fetched("pypi-2026.10.19"):
        pytest.skip(why)
    folder = _kept("pypi-2026.10.19")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from mcp_server_{name} import main; main()"
    return [sys.executable, "-I", "-c", code, *words]


def node_package(package: str) -> Path:
    """The folder of a package of npm, `name@version`; the test is skipped where it cannot be had."""
    name = f"package-{package.replace('/', '+')}"
    if why := _fetched(name):
        pytest.skip(why)
    return _kept(name) / "node_modules" / package.rpartition("@")[0]
