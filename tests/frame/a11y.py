"""Reads a window as a screen reader does: over AT-SPI, from another process.

The bindings of AT-SPI and GLib belong to the system's Python (Debian's python3-pyatspi), so a small reader runs there
and answers in JSON.
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.frame.patience import PATIENCE

Node = dict[str, Any]
"""name, role, states, text (None where it has none), actions, box [x, y, width, height], depth."""

SYSTEM_PYTHON = "/usr/bin/python3"
SCRIPT = Path(__file__).with_name("a11y_reader.py")


class Reader:
    """The windows of one application, by its accessible name, on the display of `environment`."""

    def __init__(self, environment: dict[str, str], application: str) -> None:
        self._environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        self._application = application

    def tree(self) -> list[Node]:
        """All nodes of the application, depth first; empty while it is not on the bus yet."""
        return self._ask("tree")

    def find(self, name: str, role: str | None = None) -> Node | None:
        """The first node of this name that is showing."""
        for node in self.tree():
            if node["name"] == name and role in {None, node["role"]} and "showing" in node["states"]:
                return node
        return None

    def wait_for(self, name: str, role: str | None = None, seconds: float = PATIENCE) -> Node:
        """Wait for such a node; fail the test with the names of all nodes when there is none in time."""
        deadline = time.monotonic() + seconds
        while (node := self.find(name, role)) is None:
            if time.monotonic() > deadline:
                seen = sorted({f"{node['name']} ({node['role']})" for node in self.tree() if node["name"]})
                pytest.fail(f"no {name!r} in {self._application}; it shows {seen}")
            time.sleep(0.1)
        return node

    def press(self, name: str) -> None:
        """Do the first action of the first showing node of this name."""
        self._ask("press", name)

    def write(self, name: str, text: str) -> None:
        """Replace the text of an editable node."""
        self._ask("write", name, text)

    def focus(self, name: str) -> None:
        """Give the node of this name the keyboard focus."""
        self._ask("focus", name)

    def _ask(self, *words: str) -> Any:
        command = [SYSTEM_PYTHON, str(SCRIPT), self._application, *words]
        answer = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        if answer.returncode != 0:
            pytest.fail(f"{' '.join(words)}: {answer.stderr.strip()[-600:]}", pytrace=False)
        return json.loads(answer.stdout)
