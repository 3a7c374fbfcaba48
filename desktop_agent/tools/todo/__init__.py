"""The tool with which a model keeps its list."""
