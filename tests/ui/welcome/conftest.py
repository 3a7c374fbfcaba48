from tests.ui.bridge.in_loop import in_loop
from tests.ui.shell.screen import on_screen

__all__ = ["in_loop", "on_screen"]
