"""The tool that reads a web page: fetch it, and turn its HTML into Markdown in a worker process."""
