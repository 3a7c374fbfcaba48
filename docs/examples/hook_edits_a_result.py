"""A hook behind a call, which changes what the model reads of it.

Prints:

    It is a secret.
"""

import asyncio

from desktop_agent import AgentOptions, Client, HookEdit, Hooks, PostToolUse, Text, ToolResult, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async def hide(moment: PostToolUse) -> HookEdit:
        return HookEdit(result=ToolResult(tool_use_id=moment.tool_use_id, content=[Text(text="a secret")]))

    async with Client(server, tools=[add], auto_execute_tools=True, hooks=Hooks().add_post_tool_use(hide)) as client:
        print((await client.complete("What is 1 + 2?")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
