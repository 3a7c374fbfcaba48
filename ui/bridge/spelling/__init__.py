"""Spelling: the dictionaries of this computer, the words of a text, and the process that checks them."""
