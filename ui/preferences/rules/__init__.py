"""The rules that stand, whether a call would be asked about, and what was decided so far."""
