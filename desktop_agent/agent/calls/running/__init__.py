"""Running a call: the last looks before its start, and the tool at work."""
