"""Formulas: typeset and rendered in a worker thread, in a line of text or as a block of their own."""
