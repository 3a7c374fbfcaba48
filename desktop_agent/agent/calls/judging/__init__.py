"""Whether a call may run: gates, and questions to a person."""
