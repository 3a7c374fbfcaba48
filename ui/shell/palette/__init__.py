"""The command palette: every action, conversation and model, found by a few letters."""
