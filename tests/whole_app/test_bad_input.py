"""Failures outside the program: a sentence with a remedy is on the screen, nothing is lost, and work continues."""

import io
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from PIL import Image

from desktop_agent.storage.opening import DATABASE_NAME
from tests.fakes.threaded_model_server import MODEL, Asked, ModelServer, Plain, Story, error, pieces_of
from tests.fakes.window_process import Screen, opened, wait_until
from tests.frame.selection import few

LOGIN_PAGE = b"<!doctype html><html><head><title>Sign in</title></head><body>Please sign in.</body></html>"
GOOD = Story(pieces_of("All is well again."))

# The answer of the server, then the beginnings of the sentence and of the remedy that must be on the screen.
REFUSALS: dict[str, tuple[Plain, str, str]] = {
    "wrong key": (
        error(401, "Incorrect API key provided.", "invalid_api_key"),
        "The server wants an API key: Incorrect API key provided.",
        "Enter an API key for this server.",
    ),
    "unknown model": (
        error(404, "The model does not exist.", "model_not_found"),
        "The model does not exist.",
        "Choose another model, or check the server's address.",
    ),
    "a web page": (
        Plain(LOGIN_PAGE, 200, {"content-type": "text/html"}),
        "The address answered, but not like a model server",
        "Check the server's address",
    ),
}


@contextmanager
def talking(environment: dict[str, str], data: Path, server: ModelServer) -> Iterator[Screen]:
    with opened(environment, data, "--base-url", server.url, "--model", MODEL) as (_, screen):
        screen.wait_for("Message")
        yield screen


def work_goes_on(screen: Screen, server: ModelServer) -> None:
    """Check that the next prompt is answered in the same window."""
    server.answer = GOOD
    screen.send("And now?")
    wait_until("the answer comes", lambda: screen.last("Assistant said") == "All is well again.")
    screen.wait_for("Send")


@pytest.mark.exhaustive(
    "tests/ui/shell/test_notices.py::test_an_error_stays_with_its_conversation_and_leaves_when_that_goes_on"
)
@pytest.mark.parametrize("what", few(REFUSALS, 1, "tests/ui/shell/test_notices.py"))
def test_a_refusal_is_said_with_its_remedy(real_display: dict[str, str], tmp_path: Path, what: str) -> None:
    answer, sentence, remedy = REFUSALS[what]
    with ModelServer(answer) as server, talking(real_display, tmp_path / "data", server) as screen:
        screen.send("Is anybody there?")
        error_text = wait_until("the error is shown", lambda: screen.last("Error"))
        assert sentence in error_text
        assert remedy in error_text
        assert screen.find("Open settings")
        assert screen.texts("You said") == ["Is anybody there?"]
        assert len(server.prompts) == 1, "such a refusal is final"
        work_goes_on(screen, server)


@pytest.mark.exhaustive(
    "tests/ui/shell/test_notices.py::test_an_error_stays_with_its_conversation_and_leaves_when_that_goes_on"
)
def test_nobody_at_the_address(real_display: dict[str, str], tmp_path: Path) -> None:
    with ModelServer(GOOD) as stopped:
        address, port = stopped.url, stopped.port
    with opened(real_display, tmp_path / "data", "--base-url", address, "--model", MODEL) as (_, screen):
        screen.send("Is anybody there?")
        error_text = wait_until("the error is shown", lambda: screen.last("Error"))
        assert "The model server could not be reached" in error_text
        assert "Check that the server is running and the address is right" in error_text
        assert screen.texts("You said") == ["Is anybody there?"]
        with ModelServer(GOOD, port=port) as server:
            screen.press("Retry")
            wait_until("the answer comes", lambda: screen.last("Assistant said") == "All is well again.")
            assert server.prompts[0].json["messages"][-1]["content"] == "Is anybody there?"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("only root can mount a file system of its own")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all the remaining space."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler


@pytest.mark.exhaustive(
    "tests/soak/test_refusals.py::test_a_disk_that_refuses_is_told_and_loses_nothing",
    "tests/ui/shell/test_disk_notices.py::test_a_read_only_folder_is_shown_and_used_as_soon_as_it_can_be",
)
def test_a_full_disk_loses_nothing(real_display: dict[str, str], small_disk: Path) -> None:
    data = small_disk / "data"
    with ModelServer(GOOD) as server:
        with talking(real_display, data, server) as screen:
            screen.send("Before it was full")
            wait_until("the answer comes", lambda: screen.last("Assistant said") == "All is well again.")
            screen.wait_for("Send")
            filler = fill(small_disk)
            server.answer = Story(pieces_of("Said while the disk is full. " * 20))
            screen.send("While it is full")
            error_text = wait_until("the error is shown", lambda: screen.last("Error"))
            assert "full" in error_text
            assert "Free some space and try again" in error_text
            screen.wait_for("Send")
            screen.wait_last("You said", "While it is full")
            filler.unlink()
            work_goes_on(screen, server)
        with opened(real_display, data) as (_, screen):
            screen.wait_last("You said", "And now?")
            stored = all_text(data)
            for text in ("Before it was full", "While it is full", "Said while the disk is full.", "And now?"):
                assert text in stored


def all_text(data: Path) -> str:
    """Return every text in the database, read while the program may run."""
    parts: list[str] = []
    with closing(sqlite3.connect(f"file:{data / DATABASE_NAME}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):
                parts += [str(value) for value in row if isinstance(value, str | bytes)]
    return "\n".join(parts)


def over_the_header(database: Path) -> None:
    with database.open("r+b") as file:
        file.write(os.urandom(512))


def over_pages(database: Path) -> None:
    size = database.stat().st_size
    with database.open("r+b") as file:
        for start in range(4096, size, 3 * 4096):
            file.seek(start)
            file.write(os.urandom(2048))


@pytest.mark.exhaustive(
    "tests/desktop_agent/storage/test_rescue.py::test_a_file_that_is_no_database_is_set_aside_never_silently_emptied",
    "tests/ui/shell/test_window.py::test_a_problem_of_the_program_is_a_banner",
)
@pytest.mark.parametrize("damage", few([over_the_header, over_pages], 1, "tests/desktop_agent/storage/test_rescue.py"))
def test_a_damaged_database_is_set_aside_and_said(
    real_display: dict[str, str], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    data = tmp_path / "data"
    with ModelServer(GOOD) as server:
        with talking(real_display, data, server) as screen:
            screen.send("Before the damage")
            wait_until("the answer comes", lambda: screen.last("Assistant said") == "All is well again.")
            screen.wait_for("Send")
        database = data / DATABASE_NAME
        assert not database.with_name(f"{DATABASE_NAME}-wal").exists(), "it was closed in order"
        before = len(list(data.iterdir()))
        damage(database)
        damaged = database.read_bytes()
        with talking(real_display, data, server) as screen:
            screen.wait_says("The saved conversations were damaged. The damaged file was kept as")
            work_goes_on(screen, server)
            aside = [path for path in data.iterdir() if path.is_file() and path.read_bytes() == damaged]
            assert aside, (before, sorted(path.name for path in data.iterdir()))


@pytest.mark.exhaustive(
    "tests/ui/shell/test_notices.py::test_a_damaged_picture_is_said_at_the_composer_until_one_goes_on"
)
def test_a_damaged_picture_is_refused_and_the_text_stays(real_display: dict[str, str], tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.effect_noise((300, 200), 80).save(buffer, "PNG")
    broken = buffer.getvalue()[: len(buffer.getvalue()) // 2]
    file = tmp_path / "holiday.png"
    file.write_bytes(broken)
    with ModelServer(GOOD) as server, talking(real_display, tmp_path / "data", server) as screen:
        screen.write("Message", "Look at this")
        screen.paste(broken, "image/png")
        screen.wait_says("The picture “Pasted picture” is damaged and cannot be read.", "Open it in an image viewer")
        screen.paste(f"file://{file}\r\n".encode(), "text/uri-list")
        screen.wait_says("The picture “holiday.png” is damaged and cannot be read.", "Open it in an image viewer")
        assert screen.find("Attached image: holiday.png") is None
        screen.wait_last("Message", "Look at this")
        work_goes_on(screen, server)


@pytest.mark.exhaustive(
    "tests/ui/composer/test_composer.py::test_a_huge_text_becomes_an_attachment_and_nothing_is_lost"
)
def test_a_paste_of_50_megabytes_is_kept_aside_and_can_be_taken_off(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    line = b"A line of a log file that somebody pasted whole, number %08d.\n"
    pasted = b"".join(line % number for number in range(50_000_000 // len(line % 0)))
    with ModelServer(GOOD) as server, talking(real_display, tmp_path / "data", server) as screen:
        screen.write("Message", "What is in this log?")
        screen.paste(pasted, "UTF8_STRING")
        screen.wait_for("Pasted text, 50 MB", seconds=60.0)
        screen.wait_says("Sent after the message", seconds=60.0)
        screen.wait_last("Message", "What is in this log?")
        screen.press("Send")
        wait_until("the answer comes", lambda: screen.last("Assistant said") == "All is well again.", 60.0)
        screen.wait_for("Send")
        assert content(server.prompts[0]) == "What is in this log?\n\n" + pasted.decode()
        screen.new_conversation()
        work_goes_on(screen, server)


def content(asked: Asked) -> str:
    said = asked.json["messages"][-1]["content"]
    return said if isinstance(said, str) else "".join(part["text"] for part in said)
