"""Diagrams that stand in a text as their source."""
