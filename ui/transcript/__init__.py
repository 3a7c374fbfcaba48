"""The virtualised view of a conversation."""
