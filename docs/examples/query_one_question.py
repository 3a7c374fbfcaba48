"""One question; blocks come as they are finished.

Prints:

    Hello!
"""

import asyncio

from desktop_agent import AgentOptions, Text, query


async def main(server: AgentOptions) -> None:
    async for block in query("Hello", server):
        if isinstance(block, Text):
            print(block.text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
