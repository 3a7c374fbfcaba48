"""What a server says beside its answers."""
