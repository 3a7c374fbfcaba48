"""Read the files of data that lie beside the modules."""

import tomllib
from importlib.resources import files
from typing import Any


def load_text(module: str, name: str) -> str:
    """Return the text of the file beside the module, whose `__name__` is given."""
    return files(module.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8")


def load_table(module: str, name: str) -> dict[str, Any]:
    """Return the TOML table of this file name; see `load_text`."""
    return tomllib.loads(load_text(module, name))
