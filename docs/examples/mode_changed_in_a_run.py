"""The person changes the mode while the agent works: it holds for every call that has not started.

Prints:

    ModeChanged plan
    [True]
    plan
"""

import asyncio

from desktop_agent import AgentOptions, Client, Envelope, ModeChanged, Outcome, ToolResult, ToolUse, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    def listen(envelope: Envelope) -> None:
        if isinstance(envelope.event, ToolUse):
            client.set_mode("plan")
        elif isinstance(envelope.event, ModeChanged):
            print("ModeChanged", envelope.event.to_mode)

    async with Client(server, tools=[add], auto_execute_tools=True, listener=listen) as client:
        answer = await client.complete("What is 1 + 2?")
        print([block.outcome is Outcome.DENIED for block in answer.blocks if isinstance(block, ToolResult)])
        print(client.mode.name)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
