"""The copied database that a test gets equals the one that the program makes."""

from pathlib import Path

import pytest

from desktop_agent.storage import opening
from tests.frame.disks import Disk


def test_a_copy_is_the_database_that_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, made = tmp_path / "copy", tmp_path / "made"
    opening.create_database(copy)
    monkeypatch.setattr(Disk, "makes_databases", True)
    opening.create_database(made)

    assert copy.read_bytes() == made.read_bytes()
    assert copy.stat().st_mode == made.stat().st_mode
    assert [file.name for file in tmp_path.iterdir() if file not in {copy, made}] == []
