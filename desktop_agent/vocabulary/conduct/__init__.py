"""How an agent may behave: rules, modes, hooks, guards, prompt policies, limits."""
