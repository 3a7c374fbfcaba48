"""All branches of a conversation in a dialog, and deleting its messages."""
