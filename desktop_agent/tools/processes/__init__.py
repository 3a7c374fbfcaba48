"""Programs that a tool starts, of which nothing is left running when the call is over."""
