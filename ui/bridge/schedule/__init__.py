"""Scheduled prompts for the screens."""
