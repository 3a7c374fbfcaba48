"""What an open conversation is made of."""
