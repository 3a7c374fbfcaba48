"""From bytes to frames, and what can fail in between."""
