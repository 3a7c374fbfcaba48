"""What stands under the message editor."""
