"""An approver that allows a call with other arguments.

Prints:

    It is 41.
"""

import asyncio

from desktop_agent import AgentOptions, AllowOnce, Approval, Client, Decision, HookAsk, Hooks, PreToolUse, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async def look(moment: PreToolUse) -> HookAsk:
        return HookAsk()

    async def decide(approval: Approval) -> Decision:
        return AllowOnce(edited_input={**approval.input, "b": 40})

    hooks = Hooks().add_pre_tool_use(look)
    async with Client(server, tools=[add], auto_execute_tools=True, hooks=hooks, approver=decide) as client:
        print((await client.complete("What is 1 + 2?")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
