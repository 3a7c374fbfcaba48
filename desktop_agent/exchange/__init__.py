"""Conversations for other programs and from them: export, import, and readers of histories on the disk."""
