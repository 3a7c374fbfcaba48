"""Formulas: read and drawn in a worker, in a line of text or as a block of their own."""
