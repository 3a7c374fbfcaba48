"""The Markdown of answers: how it is parsed, and which links may be opened."""
