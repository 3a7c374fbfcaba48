"""A loop of steps: at ToolCallsRequested give the results, and read on.

Prints:

    Let me see.[{'a': 1, 'b': 2}]
    results: 1
    It is 3.
    completed 1
"""

import asyncio

from desktop_agent import (
    AgentOptions,
    ContentDelta,
    LoopDone,
    Message,
    Provider,
    Text,
    ToolCallsRequested,
    ToolResult,
    ToolResultsReceived,
    tool,
)


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async with await Provider.create(server.model, dialect=server.dialect, base_url=server.base_url) as provider:
        handle = provider.chat_loop([Message.user("What is 1 + 2?")], [add])
        async for step in handle:
            if isinstance(step, ContentDelta):
                print(step.text, end="")
            elif isinstance(step, ToolCallsRequested):
                await asyncio.sleep(seconds)
                print([call.input for call in step.tool_calls])
                handle.submit_tool_results(
                    [ToolResult(tool_use_id=call.id, content=[Text(text="3")]) for call in step.tool_calls]
                )
            elif isinstance(step, ToolResultsReceived):
                print("results:", step.count)
            elif isinstance(step, LoopDone):
                print()
                print(step.end, len(step.all_tool_calls))


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
