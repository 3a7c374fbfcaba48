"""Shell lines taken apart: which commands they hold, which options are safe, and what only reads."""
