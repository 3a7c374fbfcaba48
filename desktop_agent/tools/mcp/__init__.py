"""Tools of servers that speak the Model Context Protocol. The `mcp` package is imported late: it takes a second."""
