from pathlib import Path

import pytest

from tests.desktop_agent.api.asking import Asker


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asker:
    return Asker(tmp_path / "data", capsys)
