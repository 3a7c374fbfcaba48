"""The approval dialog: what a tool call would do, and the person's decision."""
