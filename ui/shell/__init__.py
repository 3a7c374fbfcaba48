"""The main window and what connects its panes to the bridge: start, actions, command palette, dialogs, banners.

Before the first paint only what it shows is imported and created: Qt, the theme, the top of the sidebar, the composer.
Its modules import everything else inside their functions; `tests/ui/test_start.py` checks this. After the paint the
engine is imported in a thread, the transcript and the rest in slices. Text typed or sent meanwhile is not lost.
"""
