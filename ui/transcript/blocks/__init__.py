"""The blocks of a row: each lays itself out to a width, paints itself, and knows its text."""
