"""Checkpoints of files: save them before a call changes them, preview a restore, and restore them."""
