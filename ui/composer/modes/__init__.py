"""The mode: how much may happen unasked."""
