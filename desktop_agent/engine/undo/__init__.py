"""What undoing would do, what it cannot, and what the model hears of it."""
