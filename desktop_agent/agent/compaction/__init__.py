"""Older messages in short, for a model whose context fills up."""
