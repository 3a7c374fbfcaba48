"""The inbox: every tool call that waits for the person, of all conversations."""
