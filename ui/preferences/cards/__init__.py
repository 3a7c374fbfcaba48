"""Cards on a page of the settings, and the one that is being written."""
