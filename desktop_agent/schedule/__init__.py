"""Runs scheduled prompts while the program runs."""
