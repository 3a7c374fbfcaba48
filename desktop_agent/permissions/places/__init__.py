"""Folders and files that decisions look at on the disk."""
