"""Links and files from other programs, handed to the window that is open, or opening the first one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.window_process import opened, wait_until
from tests.frame.patience import PATIENCE

FROM_LINK = "This text comes from a link. Read all of it before you send it."


def start_again(environment: dict[str, str], data: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ui", "--data-dir", str(data), *targets]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_a_link_opens_the_first_window_and_the_next_one_comes_to_it(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with opened(real_display, data, "--demo", "desktop-agent://new?prompt=What+can+you+do") as (_, screen):
        screen.wait_last("Message", "What can you do")
        screen.wait_says(FROM_LINK)
        assert screen.find("You said") is None
        screen.press("Send")
        screen.wait_for("You said")
        screen.wait_gone(FROM_LINK)
        (tmp_path / "notes.txt").write_text("Milk")
        again = start_again(real_display, data, "desktop-agent://new?prompt=More", str(tmp_path / "notes.txt"))
        assert again.returncode == 0, again.stderr
        screen.wait_last("Message", "More")
        screen.wait_for("Attached file: notes.txt")
        assert start_again(real_display, data, "desktop-agent://run?command=a").returncode == 0
        screen.wait_says("Desktop Agent does not know this link, and nothing was opened.")
        mistyped = start_again(real_display, data, "akk")
        assert mistyped.returncode == 2
        assert "“akk” is neither a command nor a file that is there" in mistyped.stderr


@pytest.mark.exhaustive("tests/ui/bridge/desktop/test_links.py::test_a_copied_link_leads_back")
def test_the_link_to_a_conversation_is_in_its_menu(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(real_display, data, "--demo") as (_, screen):
        screen.wait_for("Message")
        screen.send("What can you do?")
        screen.wait_for("Assistant said")
        screen.keys("ctrl+k")
        screen.wait_focus("Commands")
        screen.type("copy the link")
        screen.wait_for("Copy the link to this conversation")
        screen.keys("Return")
        screen.focus("Message")
        screen.keys("ctrl+v")
        wait_until("the link is pasted", lambda: screen.last("Message").startswith("desktop-agent://conversation/"))
        link = screen.last("Message")
        screen.keys("ctrl+a", "Delete")
        screen.new_conversation()
        assert start_again(real_display, data, link).returncode == 0
        screen.wait_for("What can you do? — Desktop Agent", "frame")
