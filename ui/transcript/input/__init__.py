"""Input: the mouse, the wheel, the keyboard, the caret, links and the context menu."""
