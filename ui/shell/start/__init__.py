"""From the start of the process to a window in which one can write.

Before the first paint only what it shows is imported and made: Qt, the look, the sidebar's head, the composer. Modules
that belong to this import what they need later inside their functions; `tests/ui/test_start.py` counts. The engine is
imported in a thread after it, the transcript and the rest in slices. What is written and sent meanwhile is kept.
"""
