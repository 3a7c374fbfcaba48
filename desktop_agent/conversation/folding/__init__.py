"""How events and blocks become items, kind by kind."""
