"""MCP servers for the screens: their settings, what they offer and ask for, import from other programs."""
