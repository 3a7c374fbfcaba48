"""In two phases, for a program that runs its tools elsewhere; any number of rounds.

Prints:

    Let me see.
    It is 3.
"""

import asyncio

from desktop_agent import (
    AgentOptions,
    AgentResponse,
    Message,
    NeedsToolExecution,
    Text,
    ToolResult,
    TwoPhaseAgent,
    collect_text,
    tool,
)


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async with TwoPhaseAgent(server, tools=[add]) as agent:
        response: AgentResponse | None = await agent.process("What is 1 + 2?")
        while response is not None:
            if isinstance(response, NeedsToolExecution):
                await asyncio.sleep(seconds)
                results = [ToolResult(tool_use_id=call.id, content=[Text(text="3")]) for call in response.tool_calls]
                response = await agent.process_with_results([*response.messages, Message.tool_results(results)])
            else:
                print(await collect_text(response.events))
                response = response.needs


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
