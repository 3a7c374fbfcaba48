"""A tool says to the model what went wrong, and the conversation goes on.

Prints:

    [True]
    It is 1 and 2 are too large. Look at the call's arguments.
"""

import asyncio

from desktop_agent import AgentOptions, Client, Outcome, ToolFailed, ToolResult, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        raise ToolFailed(f"{a} and {b} are too large.")

    async with Client(server, tools=[add], auto_execute_tools=True) as client:
        answer = await client.complete("What is 1 + 2?")
        print([block.outcome is Outcome.FAILED for block in answer.blocks if isinstance(block, ToolResult)])
        print(answer.text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
