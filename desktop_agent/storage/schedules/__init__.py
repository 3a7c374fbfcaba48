"""Scheduled prompts and their runs in the database."""
