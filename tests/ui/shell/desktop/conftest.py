import pytest

import ui.app
from tests.fakes.qt_loop import in_loop
from tests.fakes.window import on_screen
from tests.ui.bridge.desktop.conftest import bus

__all__ = ["bus", "in_loop", "on_screen"]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """Build what follows the first conversation without a pause."""
    monkeypatch.setattr(ui.app, "_PAINT_SECONDS", 0)
