from tests.fakes.qt_loop import in_loop

__all__ = ["in_loop"]
