"""Agents that another agent calls like tools."""
