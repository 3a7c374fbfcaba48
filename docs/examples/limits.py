"""A limit ends a run in order: an event says which, and the history is whole.

Prints:

    a limit was reached
    True ['user', 'assistant', 'tool']
"""

import asyncio

from desktop_agent import AgentOptions, Client, LimitReached, Limits, RunEnd, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async with Client(server, tools=[add], auto_execute_tools=True, limits=Limits(turns=1)) as client:
        async for event in client.stream("What is 1 + 2?"):
            if isinstance(event, LimitReached):
                print("a limit was reached")
        print(client.ended is RunEnd.LIMIT, [message.role.value for message in client.history])


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
