"""How the workspace reaches the disk: checked paths and folders held open."""
