"""Rows: each is one item of the conversation, made of blocks."""
