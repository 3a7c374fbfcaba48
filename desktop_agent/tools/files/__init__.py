"""The tools that read, list and write the files of a workspace."""
