"""Servers of tools, for the screens."""
