"""What a model may call: the tools, the workspace that they work in, and how a function becomes a tool."""
