"""The Markdown that answers are written in: what is read as what, and which links lead anywhere."""
