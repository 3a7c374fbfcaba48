"""A tool that is an ordinary function: it runs in a thread and shows how far it is.

Prints:

    half of it
    It is 3.
"""

import asyncio
import time

from desktop_agent import AgentOptions, Client, RunningCall, ToolProgress, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    def add(a: int, b: int, call: RunningCall) -> int:
        """Add two numbers."""
        time.sleep(seconds)
        call.progress("half of it")
        return a + b

    async with Client(server, tools=[add], auto_execute_tools=True) as client:
        async for event in client.stream("What is 1 + 2?"):
            if isinstance(event, ToolProgress):
                print(event.text)
        print(client.history[-1].text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
