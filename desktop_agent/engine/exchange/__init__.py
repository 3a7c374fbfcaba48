"""Conversations on their way: exported, imported, copied, and read where other programs keep them."""
