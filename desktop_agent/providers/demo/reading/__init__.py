"""A request body of each dialect, read as strictly as its vendor reads it."""
