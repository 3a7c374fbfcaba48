from tests.ui.bridge.in_loop import in_loop

__all__ = ["in_loop"]
