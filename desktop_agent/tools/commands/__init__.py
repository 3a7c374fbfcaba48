"""The tool that runs a shell line, and what keeps the line in its bounds."""
