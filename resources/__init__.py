"""Files that the program reads: icons, the guide. Beside this package in a checkout, a wheel or a frozen program."""

import sys
from pathlib import Path


def resource_path(*parts: str) -> Path:
    """Where a resource lies, for example `resource_path("icons", "send.svg")`. Raises FileNotFoundError."""
    for root in _roots():
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError("/".join(parts))


def _roots() -> list[Path]:
    roots = [Path(__file__).resolve().parent]
    # PyInstaller unpacks data files beside its own archive and says where (PyInstaller manual, "Run-time Information").
    unpacked = getattr(sys, "_MEIPASS", None)
    if isinstance(unpacked, str):
        roots.append(Path(unpacked) / "resources")
    return roots
