"""What a command did to the workspace, and what git would run because of it."""
