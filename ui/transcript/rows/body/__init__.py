"""From leaves of Markdown to blocks, and what of a long text has not been read yet."""
