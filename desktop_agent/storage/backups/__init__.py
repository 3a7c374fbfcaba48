"""Backups of all conversations, and the copies that are made before a migration."""
