"""The project's commands for translations, which are scripts beside one another."""

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    """A module of the folder of the build."""
    folder = str(ROOT / "packaging")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


@cache
def compiled() -> tuple[Path, ...]:
    """The translations as Qt loads them, compiled if they are older than their sources."""
    return tuple(script("compile_translations").compile_stale())
