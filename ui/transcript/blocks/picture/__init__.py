"""Pictures: those that came with a message, and those that a text points to."""
