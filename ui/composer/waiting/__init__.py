"""Messages that wait while the agent works."""
