"""The main window and what connects its panes to the bridge: start, actions, command palette, dialogs, banners.

Before the first paint only what it shows is imported and made: Qt, the theme, the sidebar's head, the composer. Modules
that belong to this import what they need later inside their functions; `tests/ui/test_start.py` counts. The engine is
imported in a thread after it, the transcript and the rest in slices. What is written and sent meanwhile is kept."""
