"""Calls of tools at work in the window: questions about them, rules, and what was decided."""
