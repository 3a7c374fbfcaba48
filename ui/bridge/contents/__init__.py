"""What stands in conversations: files that are saved from it, pictures that are loaded for it."""
