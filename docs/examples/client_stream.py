"""Every event of an answer, as it arrives.

Prints:

    Hello!
    completed
"""

import asyncio

from desktop_agent import AgentOptions, Client, ContentDelta, RunFinished


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        async for event in client.stream("Hello"):
            if isinstance(event, ContentDelta):
                print(event.text, end="")
            elif isinstance(event, RunFinished):
                print()
                print(event.reason)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
