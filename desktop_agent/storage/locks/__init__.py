"""Locks among all processes: of files, of conversations, and of the database that is open."""
