"""Model servers: transport, dialects, and the builders that assemble answers from pieces."""
