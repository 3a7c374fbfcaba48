"""What the faces of the library stand on: a session, its events, its open calls."""
