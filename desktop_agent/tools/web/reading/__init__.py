"""What a person would read on a page, as Markdown, made in a process of its own."""
