"""What the agent asks the person."""
