"""What a call would do, shown before it happens: one view for each kind of effect."""
