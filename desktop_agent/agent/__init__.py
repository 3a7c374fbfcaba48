"""The agent: runs, their turns, tool calls, budgets, modes, guards, specialists and compaction."""
