"""Texts that are added to the instructions, for one turn or when a word is said.

Prints:

    Hello ('once',)
    Hello, a sum please ('maths',)
"""

import asyncio

from desktop_agent import AgentOptions, Client, PolicyApplied, PolicyTrigger, PromptPolicy


async def main(server: AgentOptions) -> None:
    policies = [
        PromptPolicy(id="once", text="Introduce yourself.", scope="next_turn", precedence=1),
        PromptPolicy(id="maths", text="Be exact.", trigger=PolicyTrigger(word="sum")),
    ]
    async with Client(server, policies=policies) as client:
        for prompt in ("Hello", "Hello again", "Hello, a sum please"):
            async for event in client.stream(prompt):
                if isinstance(event, PolicyApplied):
                    print(prompt, event.ids)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
