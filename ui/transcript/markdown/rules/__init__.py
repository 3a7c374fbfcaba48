"""What is read beyond CommonMark, and what is bounded, as rules of the parser."""
