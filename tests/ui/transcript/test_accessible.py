"""A reader in another process, over AT-SPI, on a display of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.a11y import Reader

SCRIPT = Path(__file__).with_name("accessible_window.py")


@pytest.fixture
def window(real_display):
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", str(SCRIPT)],
        env=real_display,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert json.loads(process.stdout.readline()) == {"signal": "shown"}
    yield process
    process.stdin.close()
    last = process.stdout.readlines()[-1:]
    process.stdout.close()
    assert process.wait(20) == 0
    assert json.loads(last[0]) == {"signal": "ended"}


def test_an_outside_reader_reads_names_and_texts_and_presses_buttons(window, real_display):
    reader = Reader(real_display, "transcript-under-test")
    reader.wait_for("Assistant said")
    tree = reader.tree()
    rows = [(node["name"], node["text"]) for node in tree if node["role"] == "list item"]
    assert [name for name, _ in rows] == [
        "You said",
        "Thinking",
        "Assistant said",
        "Tool call: list_directory",
        "Tool call: Write a file",
        "Error",
    ]
    texts = dict(rows)
    assert texts["You said"] == "What is in the folder?"
    assert texts["Assistant said"] == "Let me look.\nx = 1"
    assert "I should look." in texts["Thinking"]
    assert "Done" in texts["Tool call: list_directory"]
    assert "a.py" in texts["Tool call: list_directory"]
    assert texts["Error"].startswith("It broke.")
    assert any(node["name"] == "Transcript" for node in tree)
    boxes = {node["name"]: node["box"] for node in tree if node["role"] == "list item"}
    assert all(width > 100 and height > 20 for _, _, width, height in boxes.values())

    reader.press("Review")
    assert json.loads(window.stdout.readline()) == {"signal": "approval", "id": "approval-1"}
    reader.press("Retry")
    assert json.loads(window.stdout.readline())["action"] == "retry"
    # Pressing what folds changes the tree under the reader's feet.
    reader.press("Show thinking")
    reader.wait_for("Assistant said")
    copy = reader.wait_for("Copy code", "button" if reader.find("Copy code", "button") else None)
    assert copy["actions"] == ["Press", "SetFocus"]
