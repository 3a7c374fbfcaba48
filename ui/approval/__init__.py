"""Showing what a tool call would do, and taking the decision."""
