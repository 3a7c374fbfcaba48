"""The details of recorded endings. The events of recordings are tested in test_recordings.py two folders up."""

from pathlib import Path

import pytest

from tests.desktop_agent.providers.dialects.gemini.stream import ending
from tests.fakes.recordings import expected, recordings


@pytest.mark.parametrize("path", recordings("gemini"), ids=lambda path: path.stem)
def test_details_as_recorded(path: Path) -> None:
    deltas = [event for event in expected(path)["events"] if event["type"] == "message_delta"]
    if deltas:
        assert ending(path.read_bytes()).details == deltas[0].get("details")
