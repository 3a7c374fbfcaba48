"""Ask, then take the blocks one by one until there are no more.

Prints:

    Hello!
    Hello again!
    completed 4
"""

import asyncio

from desktop_agent import AgentOptions, Client, Text


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        for prompt in ("Hello", "Hello again"):
            await client.send(prompt)
            while (block := await client.receive()) is not None:
                if isinstance(block, Text):
                    print(block.text)
        print(client.ended, len(client.history))


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
