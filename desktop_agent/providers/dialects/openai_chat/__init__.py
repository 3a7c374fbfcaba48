"""Chat Completions, as OpenAI and about fifteen families of servers speak it."""
