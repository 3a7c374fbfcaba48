"""Shell lines taken apart: which commands are in them, what those start, and what to look at."""
