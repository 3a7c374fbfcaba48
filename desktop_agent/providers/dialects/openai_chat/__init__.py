"""Chat Completions of OpenAI and about fifteen families of servers."""
