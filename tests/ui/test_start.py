"""What is imported before the window is drawn for the first time, and what comes behind."""

import gc
import subprocess
import sys
import threading

import ui.app

SHOWN = """
import sys
import desktop_agent.engine.engine
import ui.app
late = {late!r}
print([name for name in sys.modules if any(name == each or name.startswith(each + ".") for each in late)])
"""
LATE = (
    "desktop_agent.agent.turn",
    "desktop_agent.engine.session",
    "desktop_agent.engine.writer",
    "desktop_agent.permissions.gate",
    "desktop_agent.permissions.shell",
    "desktop_agent.providers.demo",
    "desktop_agent.providers.dialects",
    "desktop_agent.tools.processes",
    "desktop_agent.tools.toolsets",
    "desktop_agent.vocabulary.options",
    *("bs4", "httpcore", "httpx", "jsonschema", "keyring", "mcp", "mcp_types", "PIL", "psutil", "pygments"),
    *("selectolax", "tree_sitter", "ziamath"),
)
RECORDS = """
import gc, threading
collects, thread = gc.isenabled(), threading.current_thread()
"""


def test_no_conversation_is_needed_to_draw_the_window():
    code = SHOWN.format(late=LATE)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout == "[]\n"


async def test_what_comes_behind_is_imported_in_a_thread_that_collects_no_garbage(tmp_path, monkeypatch):
    (tmp_path / "a_room_behind.py").write_text(RECORDS)
    monkeypatch.syspath_prepend(tmp_path)
    await ui.app._load("a_room_behind")
    room = sys.modules.pop("a_room_behind")
    assert room.thread is not threading.current_thread()
    assert not room.collects
    assert gc.isenabled()
