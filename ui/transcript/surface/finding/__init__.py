"""Find in conversation: what is looked for, where it is, and what of it is marked on the screen."""
