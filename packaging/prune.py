"""Removes from the folder what nothing in it loads, and the debugging symbols of Python and its modules."""

import re
import subprocess
from pathlib import Path


def libraries(folder: Path) -> list[Path]:
    """Return the programs and shared libraries in a folder."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    return [file for file in files if is_elf(file)]


def is_elf(file: Path) -> bool:
    """Return whether a file begins as one in the ELF format."""
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def needed_by(file: Path) -> set[str]:
    """Return the file names of the libraries that a file asks the loader for."""
    headers = subprocess.run(["objdump", "-p", file], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"NEEDED\s+(\S+)", headers))


def is_plain_library(file: Path) -> bool:
    """Return whether a library is loaded only where another file needs it; modules and plugins are loaded by path."""
    if "plugins" in file.parts or "python3" in file.name:
        return False
    return bool(re.match(r"lib.*\.so\.\d", file.name))


def unreachable(folder: Path) -> list[Path]:
    """Return plain libraries that neither the program, nor a module, nor a plugin needs, however indirectly."""
    files = libraries(folder)
    plain = {file.name: file for file in files if is_plain_library(file)}
    waiting = [file for file in files if not is_plain_library(file)]
    reached: set[str] = set()
    while waiting:
        new = (needed_by(waiting.pop()) & plain.keys()) - reached
        reached |= new
        waiting += [plain[name] for name in new]
    return sorted(file for name, file in plain.items() if name not in reached)


def has_symbols(file: Path) -> bool:
    """Return whether a file is Python's library or a module. Qt's files have hardly any symbols."""
    return "PySide6" not in file.parts and bool(re.match(r"libpython3|.+\.(cpython-\w+(-\w+)*|abi3)\.so$", file.name))


def prune(folder: Path) -> None:
    """Remove unneeded libraries and symbols from a folder."""
    for file in unreachable(folder):
        file.unlink()
    for link in [path for path in folder.rglob("*") if path.is_symlink() and not path.exists()]:
        link.unlink()
    for file in libraries(folder):
        if has_symbols(file):
            subprocess.run(["strip", "--strip-unneeded", file], check=True)
