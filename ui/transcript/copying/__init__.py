"""What is copied: blocks and parts of them written as Markdown and as HTML, joined with what stands around them."""
