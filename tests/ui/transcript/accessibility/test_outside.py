"""The transcript as a program outside reads it, over AT-SPI, on a display of its own."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.frame.a11y import SYSTEM_PYTHON
from tests.frame.patience import PATIENCE

HERE = Path(__file__).parent
WINDOW = HERE.parent / "accessible_window.py"
READER = HERE / "outside_reader.py"


class Window:
    """The window in a process of its own, and the reader in another one."""

    def __init__(self, environment, kind):
        self._environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", str(WINDOW), kind],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.heard() == {"signal": "shown"}

    def heard(self):
        return json.loads(self.process.stdout.readline())

    def figures(self, word="figures"):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.heard()

    def ask(self, *words):
        command = [SYSTEM_PYTHON, str(READER), "transcript-under-test", *map(str, words)]
        answer = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert answer.returncode == 0, answer.stderr[-1500:]
        return json.loads(answer.stdout)

    def end(self):
        self.process.stdin.close()
        rest = self.process.stdout.readlines()
        self.process.stdout.close()
        assert self.process.wait(20) == 0
        assert json.loads(rest[-1]) == {"signal": "ended"}


@pytest.fixture
def opened(real_display):
    windows = []

    def open_window(kind):
        windows.append(Window(real_display, kind))
        return windows[-1]

    yield open_window
    for window in windows:
        window.end()


def at_rest(window):
    figures = []
    for _ in range(100):
        figures.append(window.figures())
        if len(figures) > 3 and figures[-1] == figures[-2] == figures[-3] == figures[-4]:
            break
        time.sleep(0.15)
    return figures[-1]


def test_a_conversation_of_300_messages_is_read_in_order_without_being_laid_out(opened):
    window = opened("long")
    # At rest what stands one screen above is laid out too; until then heights become exact.
    figures_before = at_rest(window)
    rows = [row for row in window.ask("rows") if row[0] == "list item"]
    assert [row[1:] for row in rows] == [
        ["Assistant said", f"Answer {number}.\nitem\nIts end."] if number % 2 else ["You said", f"Question {number}?"]
        for number in range(300)
    ]
    figures_after = window.figures()
    assert figures_after["laid"] <= figures_before["laid"] + 5
    assert figures_after["rows"] <= figures_before["rows"] + 5
    assert figures_after["top"] == figures_before["top"]
    first = window.ask("row", 1)
    assert [block_node["name"] for block_node in first["children"]] == ["Answer 1.", "• item", "Its end."]


def flat(node):
    yield node
    for child in node["children"]:
        yield from flat(child)


def test_every_block_says_what_it_is(opened):
    window = opened("rich")
    row = window.ask("row", 1)
    parts = row["children"]
    assert [(block_node["role"], block_node["name"]) for block_node in parts] == [
        ("heading", "Title"),
        ("paragraph", "Some text with a link."),
        ("heading", "Second"),
        ("list item", "1. first"),
        ("list item", "2. second"),
        ("block quote", "quoted"),
        ("table", "Table"),
        ("section", "Code: py"),
        ("text", "Formula: x^2"),
        ("separator", ""),
        ("paragraph", "The 😀 end of it."),
    ]
    assert [block_node["level"] for block_node in parts if block_node["role"] == "heading"] == ["1", "2"]
    assert parts[-1]["text"] == "The 😀 end of it."
    table = parts[6]
    assert [[cell["name"] for cell in line["children"]] for line in table["children"]] == [
        ["name", "value"],
        ["one", "two"],
    ]
    assert {cell["role"] for cell in table["children"][0]["children"]} == {"table column header"}
    assert {cell["role"] for cell in table["children"][1]["children"]} == {"table cell"}
    links = [node for node in flat(row) if node["role"] == "link"]
    assert [(node["name"], node["description"]) for node in links] == [
        ("a link", "https://x.org/a"),
        ("two", "https://x.org/b"),
    ]
    assert all(10 < node["box"][2] < 100 and node["box"][3] > 5 for node in links)
    assert {node["name"] for node in flat(row) if "Press" in node["actions"]} >= {"Copy code", "Wrap lines", "a link"}
    window.ask("press", 1, "two")
    assert window.heard() == {"signal": "link", "target": "https://x.org/b"}


def test_the_caret_is_read_and_put_from_outside(opened):
    window = opened("rich")
    window.ask("put", "Some text with a link.", 6)
    figures = window.figures()
    assert figures["caret"] == [1, 1, 6]
    caret = window.ask("caret", "Some text with a link.")
    assert caret["offset"] == 6
    assert caret["character"][0] == "e"
    assert caret["word"][0].strip() == "text"
    assert caret["line"][0].strip() == "Some text with a link."
    left, _, width, height = caret["box"]
    window.ask("put", "Some text with a link.", 12)
    right, _, _, _ = window.ask("caret", "Some text with a link.")["box"]
    assert right > left
    assert 2 < width < 20
    assert height > 8
    row = window.ask("caret", "Assistant said")
    assert row["offset"] == len("Title\n") + 12
