"""Servers before anything of them is checked."""
