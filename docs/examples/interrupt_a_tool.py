"""Stop while a tool runs: its call has a result all the same.

Prints:

    cancelled [True]
"""

import asyncio

from desktop_agent import AgentOptions, Client, Outcome, ToolResult, ToolStarted, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers, in an hour."""
        await asyncio.sleep(seconds + 3600)
        return a + b

    async with Client(server, tools=[add], auto_execute_tools=True) as client:
        async for event in client.stream("What is 1 + 2?"):
            if isinstance(event, ToolStarted):
                client.interrupt()
        results = [block for message in client.history for block in message.blocks if isinstance(block, ToolResult)]
        print(client.ended, [result.outcome is Outcome.CANCELLED for result in results])


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
