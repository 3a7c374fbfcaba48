"""A hook that wants somebody to be asked, and who is asked.

Prints:

    asked about add It costs something.
    It is 3.
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
        return HookAsk("It costs something.")

    async def decide(approval: Approval) -> Decision:
        print("asked about", approval.tool_use.name, approval.reason)
        return AllowOnce()

    hooks = Hooks().add_pre_tool_use(look)
    async with Client(server, tools=[add], auto_execute_tools=True, hooks=hooks, approver=decide) as client:
        print((await client.complete("What is 1 + 2?")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
