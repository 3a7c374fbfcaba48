"""Servers written by others, installed once from npm and PyPI into a folder outside the project."""

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


def _cache_folder(name: str) -> Path:
    """Return the cache folder `name`, which only this user may write, as programs in it are run."""
    folder = Path(tempfile.gettempdir(), f"desktop-agent-servers-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    assert folder.stat().st_uid == os.getuid()
    assert folder.stat().st_mode & 0o077 == 0
    return folder / name


@cache
def _install(name: str) -> str:
    """Install the packages of the folder `name` if they are not there; return why they cannot be, or nothing."""
    folder = _cache_folder(name)
    if (folder / "complete").exists():
        return ""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-fetch-", dir=folder.parent) as temporary:
        new = Path(temporary, "new")
        new.mkdir()
        try:
            for command in _commands(name, new, temporary):
                subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE, cwd=temporary)
        except (subprocess.SubprocessError, OSError) as error:
            return f"the servers of {name} cannot be had: {error}"
        (new / "complete").touch()
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    return ""


def _commands(name: str, folder: Path, temporary: str) -> list[list[str]]:
    if name.startswith("package-"):
        return _npm(folder, temporary, (name.removeprefix("package-").replace("+", "/"),))
    return _npm(folder, temporary) if name.startswith("npm") else _pypi(folder)


def _npm(folder: Path, temporary: str, packages: tuple[str, ...] = PACKAGES) -> list[list[str]]:
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", f"{temporary}/cache"]
    return [[*NPM, "install", *quiet, "--prefix", str(folder), *packages]]


def _pypi(folder: Path) -> list[list[str]]:
    # Only the packages: the scripts of a virtual environment name the folder where it was created.
    return [[sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *PYPI]]


def node_server(name: str, *arguments: str) -> list[str]:
    """Return the command of a server from npm, or skip the test where it cannot be installed."""
    if why := _install("npm-2026.8.31"):
        pytest.skip(why)
    script = _cache_folder("npm-2026.8.31") / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    return [NODE, str(script), *arguments]


def python_server(name: str, *arguments: str) -> list[str]:
    """Return the command of a server from PyPI, or skip the test where it cannot be installed."""
    if why := _install("pypi-2026.10.19"):
        pytest.skip(why)
    folder = _cache_folder("pypi-2026.10.19")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from mcp_server_{name} import main; main()"
    return [sys.executable, "-I", "-c", code, *arguments]


def node_package(package: str) -> Path:
    """Return the folder of the npm package `name@version`, or skip the test where it cannot be installed."""
    name = f"package-{package.replace('/', '+')}"
    if why := _install(name):
        pytest.skip(why)
    return _cache_folder(name) / "node_modules" / package.rpartition("@")[0]
