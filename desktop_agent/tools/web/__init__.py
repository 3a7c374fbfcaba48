"""The tool that reads a page of the web."""
