"""Open conversations (sessions), and the engine that builds the headless half."""
