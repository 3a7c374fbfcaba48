"""What one command makes another do, as far as its words tell."""
