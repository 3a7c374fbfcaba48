"""The library and the headless commands: Client, query, Provider, chat loop, two-phase agent, and `ask` and `check`."""
