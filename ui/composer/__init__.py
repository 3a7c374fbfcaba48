"""The composer: where messages are written."""
