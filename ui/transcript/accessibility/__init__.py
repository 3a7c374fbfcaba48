"""The transcript for people who do not see it."""
