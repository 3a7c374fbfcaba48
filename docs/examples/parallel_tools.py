"""Calls that only read run side by side; their results come in the order of the calls.

Prints:

    True 2
    It is 3 and 7.
"""

import asyncio

from desktop_agent import AgentOptions, Client, Effect, ToolClass, ToolResult, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    together: list[int] = []
    counts: list[int] = []

    @tool(tool_class=ToolClass.READ_ONLY, effects=[Effect.READ])
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        together.append(a)
        counts.append(len(together))
        await asyncio.sleep(seconds)
        together.remove(a)
        return a + b

    async with Client(server, tools=[add], auto_execute_tools=True) as client:
        answer = await client.complete("What are 1 + 2 and 3 + 4?")
        print(max(counts) == 2 or seconds < 0.01, sum(isinstance(block, ToolResult) for block in answer.blocks))
        print(answer.text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
