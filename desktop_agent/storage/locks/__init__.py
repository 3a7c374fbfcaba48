"""Who has a conversation, and who has the database open, among all processes."""
