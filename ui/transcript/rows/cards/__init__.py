"""Parts of the cards of calls."""
