"""Model servers: transport, dialects, and the one place that assembles what comes in pieces."""
