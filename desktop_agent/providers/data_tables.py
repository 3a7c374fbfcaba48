"""Read the tables of data beside the modules, in TOML."""

from typing import Any


def load_table(module: str, name: str) -> dict[str, Any]:
    """Return the table of this file name beside the module, whose `__name__` is given. Blocks: it reads a file."""
    # Late: the window starts without any table.
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files(module.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8"))
