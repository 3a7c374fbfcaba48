"""In the plan mode nothing is changed: calls that would are denied.

Prints:

    [True]
"""

import asyncio

from desktop_agent import AgentOptions, Client, Outcome, ToolResult, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async with Client(server, tools=[add], auto_execute_tools=True, mode="plan") as client:
        answer = await client.complete("What is 1 + 2?")
        print([block.outcome is Outcome.DENIED for block in answer.blocks if isinstance(block, ToolResult)])


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
