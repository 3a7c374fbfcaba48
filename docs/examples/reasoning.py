"""How much a model thinks, and what it shows of that.

Prints:

    effort Hello!
    disabled Hello!
"""

import asyncio

from desktop_agent import AgentOptions, Client, ProviderConfig, ReasoningDisabled, ReasoningEffort


async def main(server: AgentOptions) -> None:
    for reasoning in (ReasoningEffort(level="low"), ReasoningDisabled()):
        async with Client(server, config=ProviderConfig(reasoning=reasoning)) as client:
            answer = await client.complete("Hello")
            print(reasoning.type, answer.text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
