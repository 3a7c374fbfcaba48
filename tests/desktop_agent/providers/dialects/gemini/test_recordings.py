"""What the recordings say of an end beside its reason. Their events: test_recordings.py two folders up."""

from pathlib import Path

import pytest

from tests.desktop_agent.providers.dialects.gemini.stream import ending
from tests.fakes.recordings import expected, recordings


@pytest.mark.parametrize("path", recordings("gemini"), ids=lambda path: path.stem)
def test_details_as_recorded(path: Path) -> None:
    about = [each for each in expected(path)["events"] if each["type"] == "message_delta"]
    if about:
        assert ending(path.read_bytes()).details == about[0].get("details")
