"""One model, asked directly: the whole answer, and its calls, which nobody runs.

Prints:

    Hello!
    [('add', {'a': 1, 'b': 2})] tool_use
"""

import asyncio

from desktop_agent import AgentOptions, Message, Provider, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async with await Provider.create(server.model, dialect=server.dialect, base_url=server.base_url) as provider:
        print((await provider.chat("Hello")).text)
        answer = await provider.complete([Message.user("What is 1 + 2?")], [add])
        print([(use.name, use.input) for use in answer.tool_uses], answer.stop_reason)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
