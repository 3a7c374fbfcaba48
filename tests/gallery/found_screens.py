"""Conversations of other programs: the offer, their folders in the sidebar, one shown in place, the settings."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from desktop_agent.conversation.items import ToolCallItem
from desktop_agent.types.messages import Message
from tests.desktop_agent.exchange.readers.foreign_homes import (
    call,
    claude_entry,
    result,
    write_claude_code,
    write_codex,
    write_gemini,
    write_goose,
    write_jan,
    write_lines,
    write_lm_studio,
    write_opencode,
    write_webui,
)
from tests.gallery.conversation_screens import said
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from ui.shell.found_conversations import FoundPresenter
from ui.sidebar.found_section import FoundSection

SESSION = ".claude/projects/-home-ann-app/5e551011-0000-4000-8000-0000000000aa.jsonl"
BEFORE = "def pages(total, size):\n    count = total // size\n    return count\n"
ROUNDED_UP = "    # The last page may not be full.\n    count = (total + size - 1) // size\n"
AFTER = BEFORE.replace("    count = total // size\n", ROUNDED_UP)


def write_home(home: Path) -> None:
    for write in (
        write_claude_code,
        write_codex,
        write_opencode,
        write_gemini,
        write_goose,
        write_lm_studio,
        write_jan,
        write_webui,
    ):
        write(home)
    stamp = {"timestamp": "2026-11-26T09:30:00.000Z"}
    edits = [
        {"old_string": "import pages", "new_string": "from pages import pages"},
        {"old_string": "assert pages(10, 3) == 3", "new_string": "assert pages(10, 3) == 4"},
    ]
    path = "/home/ann/app/pages.py"
    calls = [
        call("c1", "Read", file_path=path),
        call("c2", "Edit", file_path=path, old_string=BEFORE, new_string=AFTER),
        call("c3", "MultiEdit", file_path="/home/ann/app/test_pages.py", edits=edits),
        call("c4", "Bash", command="pytest -q"),
    ]
    results = [
        result("c1", BEFORE),
        result("c2", "The file was updated."),
        result("c3", "2 edits."),
        result("c4", "3 passed in 0.12s"),
    ]
    question = "The last page is missing when the list is not full. Find out why, and write a test."
    answer = "The division lost the last page. It is **rounded up** now, and `test_pages.py` says so."
    entries = [
        claude_entry("user", "p1", None, question, **stamp),
        claude_entry("assistant", "p2", "p1", [{"type": "text", "text": "I look at the file first."}, *calls], **stamp),
        claude_entry("user", "p3", "p2", results, **stamp),
        claude_entry("assistant", "p4", "p3", [{"type": "text", "text": answer}], **stamp),
    ]
    write_lines(home / SESSION, entries)


@contextmanager
def home_of_others() -> Iterator[Path]:
    """Set up a home folder with conversations of every program."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="desktop-agent-home-") as place:
        for name in [name for name in os.environ if name.startswith("XDG_")]:
            del os.environ[name]
        os.environ["HOME"] = place
        write_home(Path(place))
        try:
            yield Path(place)
        finally:
            os.environ.clear()
            os.environ.update(before)


async def show_found(desk: Desk, *, accepted: bool = True) -> FoundSection:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    if accepted:
        desk.library.found.answer(["claude-code", "codex", "goose"], shows=True, offers=False)
        await until(lambda: bool(desk.library.found.shown))
    FoundPresenter(desk.library, desk.window)
    desk.window.window_layout.show_list()
    section = cast("FoundSection", desk.window.sidebar._section)
    await until(lambda: section.isVisible() if accepted else "found" in desk.window.banners.keys)
    return section


async def open_folder(section: FoundSection) -> None:
    section._toggle("claude-code")
    await until(lambda: section.rows.rowCount() > 4)


async def open_session(desk: Desk) -> None:
    section = await show_found(desk)
    await open_folder(section)
    section._choose(section.rows.index(1))
    await until(lambda: desk.library.current is not None and desk.library.current.is_found)
    transcript = desk.library.current.transcript
    for item in transcript:
        if isinstance(item, ToolCallItem) and item.name in {"edit_file", "MultiEdit"}:
            row = desk.window.page.transcript.row_viewport.rows.row(list(transcript).index(item))
            row._toggle()


@scene("found-offer")
async def found_offer(desk: Desk) -> None:
    with home_of_others():
        await show_found(desk, accepted=False)


@scene("found-folders")
async def found_folders(desk: Desk) -> None:
    with home_of_others():
        await open_folder(await show_found(desk))


@scene("found-session", 1100, 900)
async def found_session(desk: Desk) -> None:
    with home_of_others():
        await open_session(desk)


@scene("found-versions", 1100, 900)
async def found_versions(desk: Desk) -> None:
    with home_of_others():
        section = await show_found(desk)
        await open_folder(section)
        section._choose(section.rows.index(2))
        await until(lambda: desk.library.current is not None and desk.library.current.is_found)


@scene("found-continued")
async def found_continued(desk: Desk) -> None:
    with home_of_others():
        await open_session(desk)
        desk.window.findChild(FoundPresenter)._continue()
        await until(lambda: not desk.library.current.is_found)


@scene("found-settings", 1100, 900)
async def found_settings(desk: Desk) -> None:
    with home_of_others():
        await show_found(desk)
        dialog = desk.settings.show("histories")
        await until(lambda: bool(dialog.histories._boxes))
