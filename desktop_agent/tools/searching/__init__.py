"""The tools that look through the files of a workspace: for a text in them, and for their names."""
