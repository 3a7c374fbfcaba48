"""Ways through a conversation besides scrolling."""
