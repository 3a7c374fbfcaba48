"""Columns and rows of tables."""
