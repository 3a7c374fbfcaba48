"""A scripted model behind a real loopback server, to try the program without a network, a key or a download."""
