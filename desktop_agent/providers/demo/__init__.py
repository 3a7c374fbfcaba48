"""A scripted model behind a real loopback server: what a person can try without a network, a key or a download."""
