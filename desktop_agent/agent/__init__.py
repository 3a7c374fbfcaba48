"""The turn: the only loop."""
