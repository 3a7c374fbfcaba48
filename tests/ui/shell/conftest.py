import pytest

import ui.app
from tests.ui.bridge.in_loop import in_loop
from tests.ui.shell.screen import on_screen

__all__ = ["in_loop", "on_screen"]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """What comes behind the first conversation comes at once."""
    monkeypatch.setattr(ui.app, "_PAINT_SECONDS", 0)
