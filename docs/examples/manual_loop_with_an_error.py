"""By hand, two calls of one answer: one of them failed, and `send("")` goes on.

Prints:

    It is 3 and the numbers are too large.
"""

import asyncio

from desktop_agent import AgentOptions, Client, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async with Client(server, tools=[add]) as client:
        asked = await client.complete("What are 1 + 2 and 3 + 4?")
        first, second = asked.tool_uses
        await asyncio.sleep(seconds)
        client.add_tool_result(second.id, "the numbers are too large", is_error=True)
        client.add_tool_result(first.id, 3)
        await client.send("")
        while await client.receive() is not None:
            pass
        print(client.history[-1].text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
