"""What lasts: conversations, pictures, preferences, secrets."""
