"""The actions of the window, and where people find them: command palette, menu bar, help."""
