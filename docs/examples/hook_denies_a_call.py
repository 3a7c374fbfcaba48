"""A hook that keeps a call from running; the model is told, and goes on.

Prints:

    [True]
"""

import asyncio

from desktop_agent import AgentOptions, Client, HookDeny, Hooks, Outcome, PreToolUse, ToolResult, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async def never(moment: PreToolUse) -> HookDeny:
        return HookDeny(f"No {moment.name} today.")

    async with Client(server, tools=[add], auto_execute_tools=True, hooks=Hooks().add_pre_tool_use(never)) as client:
        answer = await client.complete("What is 1 + 2?")
        print([block.outcome is Outcome.DENIED for block in answer.blocks if isinstance(block, ToolResult)])


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
