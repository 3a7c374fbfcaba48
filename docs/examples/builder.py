"""Options step by step.

Prints:

    It is 3.
"""

import asyncio

from desktop_agent import AgentOptions, Client, Limits, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    options = (
        AgentOptions.builder()
        .server(server.base_url, dialect=server.dialect)
        .model(server.model)
        .system_prompt("Be brief.")
        .tools(add)
        .auto_execute_tools()
        .limits(Limits(turns=5))
        .build()
    )
    async with Client(options) as client:
        print((await client.complete("What is 1 + 2?")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
