"""Talk with one of the specialists directly; it has never more than its parent.

Prints:

    It is 3. You are an accountant.
"""

import asyncio

from desktop_agent import AgentOptions, Client, Specialist, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    accountant = Specialist(name="accountant", description="d", system_prompt="You are an accountant.", tools=["add"])
    options = server.with_values(tools=[add], specialists=[accountant], auto_execute_tools=True)
    async with Client(options.for_specialist("accountant")) as client:
        print((await client.complete("What is 1 + 2?")).text, client.options.system_prompt)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
