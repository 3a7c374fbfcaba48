"""Colours of code. Grammars are foreign regular expressions, so they are read in a process of its own."""
