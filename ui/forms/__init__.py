"""Forms: each field is declared once, and one builder draws, validates and reads them all."""
