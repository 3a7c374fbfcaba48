"""Nouns only: what every floor above talks about. Nothing here does I/O."""
