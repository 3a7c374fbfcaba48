"""Markdown that grows: text in, closed blocks and an open tail out. No Qt here."""
