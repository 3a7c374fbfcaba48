"""A server of tools being written."""
