"""Takes out of the folder what nothing in it loads, and the debugging symbols of Python and its modules."""

import re
import subprocess
from pathlib import Path


def libraries(folder: Path) -> list[Path]:
    """Programs and shared libraries in it."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    return [file for file in files if is_elf(file)]


def is_elf(file: Path) -> bool:
    """By its first bytes."""
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def needed_by(file: Path) -> set[str]:
    """File names of the libraries that it asks the loader for."""
    headers = subprocess.run(["objdump", "-p", file], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"NEEDED\s+(\S+)", headers))


def is_plain_library(file: Path) -> bool:
    """Loaded only because something names it; Python's modules and Qt's plugins are loaded by path."""
    if "plugins" in file.parts or "python3" in file.name:
        return False
    return bool(re.match(r"lib.*\.so\.\d", file.name))


def unreachable(folder: Path) -> list[Path]:
    """Plain libraries that neither the program, nor a module, nor a plugin needs, however indirectly."""
    found = libraries(folder)
    plain = {file.name: file for file in found if is_plain_library(file)}
    waiting = [file for file in found if not is_plain_library(file)]
    reached: set[str] = set()
    while waiting:
        new = (needed_by(waiting.pop()) & plain.keys()) - reached
        reached |= new
        waiting += [plain[name] for name in new]
    return sorted(file for name, file in plain.items() if name not in reached)


def has_symbols(file: Path) -> bool:
    """Whether it is of Python: itself, or a module. Qt brings none, and what its libraries have is little."""
    return "PySide6" not in file.parts and bool(re.match(r"libpython3|.+\.(cpython-\w+(-\w+)*|abi3)\.so$", file.name))


def prune(folder: Path) -> None:
    """Make it smaller."""
    for file in unreachable(folder):
        file.unlink()
    for link in [path for path in folder.rglob("*") if path.is_symlink() and not path.exists()]:
        link.unlink()
    for file in libraries(folder):
        if has_symbols(file):
            subprocess.run(["strip", "--strip-unneeded", file], check=True)
