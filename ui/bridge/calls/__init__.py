"""Calls of tools for the screens: those that wait, the rules that stand, and what was decided."""
