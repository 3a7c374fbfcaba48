"""One open conversation, and what builds the headless half."""
