"""The SQLite database: one thread, one connection, and what to do when the file is damaged."""
