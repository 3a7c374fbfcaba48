"""Readers of what other assistants left on this disk: one module for each program, read-only."""
