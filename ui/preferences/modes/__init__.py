"""The page of modes."""
