"""What of the disk is read to know what git would run."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from desktop_agent.sandbox.git_config import read_text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes among files")


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    """A pipe with somebody at its other end who waits for a reader."""
    path = tmp_path / "commondir"
    os.mkfifo(path)

    def write() -> None:
        with suppress(BrokenPipeError):
            path.write_text("written")

    writer = threading.Thread(target=write)
    writer.start()
    yield path
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer.join()
    os.close(reader)


def test_a_pipe_is_neither_read_nor_waited_for(pipe: Path) -> None:
    assert read_text(pipe) == ""
