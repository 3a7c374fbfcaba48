"""What texts are made of."""
