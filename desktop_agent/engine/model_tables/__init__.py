"""Models that servers list, and what the person's own files say of them."""
