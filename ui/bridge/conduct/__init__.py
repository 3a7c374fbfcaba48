"""What the person may change while the agent works, as the screens see it."""
