from tests.fakes.qt_loop import in_loop
from tests.fakes.window import on_screen

__all__ = ["in_loop", "on_screen"]
