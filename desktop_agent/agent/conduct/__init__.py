"""How an agent is steered: waiting messages, modes, prompt policies, guards, and questions to the person."""
