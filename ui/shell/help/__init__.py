"""Help: the guide, the keyboard shortcuts, and what the program says about itself."""
