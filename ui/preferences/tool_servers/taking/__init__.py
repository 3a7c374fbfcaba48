"""Servers that other programs know, taken over."""
