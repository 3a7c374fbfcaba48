"""Thin faces on the engine; none has a loop of its own."""
