from pathlib import Path

import pytest

from tests.fakes.ask_command import Asker


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asker:
    return Asker(tmp_path / "data", capsys)
