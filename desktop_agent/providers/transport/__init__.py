"""Bytes to frames, and what can go wrong on the way."""
