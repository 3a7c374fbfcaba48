"""Servers of tools in the window."""
