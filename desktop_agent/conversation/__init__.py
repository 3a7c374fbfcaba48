"""A conversation in memory: its transcript, the history that a model reads, and how pictures get in."""
