"""Model servers: transport, dialects, and the builders that assemble what comes in pieces."""
