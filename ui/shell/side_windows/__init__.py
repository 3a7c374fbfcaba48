"""Windows beside the main one: each with one conversation, and the small one for a quick question."""
