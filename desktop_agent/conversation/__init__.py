"""A conversation in memory: what is shown, and how pictures get in."""
