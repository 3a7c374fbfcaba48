"""The servers of tools that the person set up, for the conversations of one engine."""
