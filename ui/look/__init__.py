"""Colours, fonts, spacing and icons."""
