"""What lasts: conversations and their journal in SQLite, pictures, preferences, secrets."""
