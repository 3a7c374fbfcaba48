"""The page of specialists."""
