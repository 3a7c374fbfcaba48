"""A hook that changes the arguments of a call; both are kept.

Prints:

    {'a': 2, 'b': 4}
    [{'a': 1, 'b': 2}]
    It is 6.
"""

import asyncio

from desktop_agent import AgentOptions, Client, HookEdit, Hooks, PreToolUse, ToolStarted, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async def double(moment: PreToolUse) -> HookEdit:
        return HookEdit(input={name: 2 * number for name, number in moment.input.items()})

    async with Client(server, tools=[add], auto_execute_tools=True, hooks=Hooks().add_pre_tool_use(double)) as client:
        async for event in client.stream("What is 1 + 2?"):
            if isinstance(event, ToolStarted):
                print(event.input)
        print([use.input for message in client.history for use in message.tool_uses])
        print(client.history[-1].text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
