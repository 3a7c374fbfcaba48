"""The tools that a server offers, and what counts about each."""
