"""Prints the user id, the home folder, its entries, and the text of a file: run by test_unprivileged."""

import os
import sys
from pathlib import Path


def read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        return type(error).__name__


print(os.geteuid())
print(Path.home())
print(list(Path.home().iterdir()))
print(read(sys.argv[1]))
