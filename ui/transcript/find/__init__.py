"""Find in conversation: the query, its matches, and how they are highlighted."""
