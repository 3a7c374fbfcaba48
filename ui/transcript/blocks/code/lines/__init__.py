"""Lines of code in pieces: where a line is cut, how a piece is laid out, and where it stands."""
