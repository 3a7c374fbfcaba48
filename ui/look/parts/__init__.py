"""Larger controls that more than one pane uses."""
