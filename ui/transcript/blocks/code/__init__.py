"""Code blocks, program output and syntax highlighting, which runs in a worker process."""
