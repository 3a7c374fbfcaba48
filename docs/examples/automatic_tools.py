"""Tools that the runtime runs, while text streams.

Prints:

    [{'a': 1, 'b': 2}]
    It is 3.
"""

import asyncio

from desktop_agent import AgentOptions, Client, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async with Client(server, tools=[add], auto_execute_tools=True) as client:
        answer = await client.complete("What is 1 + 2?")
        print([use.input for use in answer.tool_uses])
        print(answer.text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
