"""Where messages are written."""
