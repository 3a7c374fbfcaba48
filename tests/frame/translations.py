"""Imports the scripts of `packaging`, which are no package: those for translations, and others."""

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    """Import a script of the folder `packaging` as a module."""
    folder = str(ROOT / "packaging")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


@cache
def compiled() -> tuple[Path, ...]:
    """The translations as Qt loads them; compiles those that are older than their sources."""
    return tuple(script("compile_translations").compile_stale())
