"""The tool that runs a shell command, and what the command did to the workspace."""
