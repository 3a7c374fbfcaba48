"""Pure decisions about what may run."""
