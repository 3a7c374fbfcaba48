"""Blocks that hold a few things, each of which is selected and copied as a whole."""
