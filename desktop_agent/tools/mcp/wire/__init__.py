"""What comes over the wire, brought within bounds before the library's models see it."""
