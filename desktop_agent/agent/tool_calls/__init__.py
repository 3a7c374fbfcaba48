"""Tool calls of one answer: gates, approvals, execution, and a result for each, in call order."""
