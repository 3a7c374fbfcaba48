"""The page of servers of tools."""
