"""Pure decisions about what may run: rules, hard denies, approvals and untrusted content."""
