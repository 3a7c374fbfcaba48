"""By hand: you get the calls, run them, give the results and go on.

Prints:

    Let me see.
    It is 3.
"""

import asyncio

from desktop_agent import AgentOptions, Client, RunEnd, Text, ToolUse, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async with Client(server, tools=[add]) as client:
        await client.send("What is 1 + 2?")
        while True:
            calls: list[ToolUse] = []
            while (block := await client.receive()) is not None:
                if isinstance(block, Text):
                    print(block.text)
                elif isinstance(block, ToolUse):
                    calls.append(block)
            if client.ended is not RunEnd.AWAITING_RESULTS:
                break
            for call in calls:
                await asyncio.sleep(seconds)
                client.add_tool_result(call.id, call.input["a"] + call.input["b"])
            await client.continue_()


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
