"""The client of MCP servers (Model Context Protocol, https://modelcontextprotocol.io): transports, lifecycle, catalog,
limits and OAuth.
"""
