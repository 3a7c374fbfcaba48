"""Modes, waiting messages and questions at work."""
