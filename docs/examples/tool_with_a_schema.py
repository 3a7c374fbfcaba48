"""A tool whose arguments are a pydantic model, and one with a shorthand schema.

Prints:

    It is 3.
    It is 3.
"""

import asyncio

from pydantic import BaseModel

from desktop_agent import AgentOptions, Client, JsonObject, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    class Numbers(BaseModel):
        a: int
        b: int

    @tool(schema=Numbers)
    async def add(numbers: Numbers) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return numbers.a + numbers.b

    @tool(schema={"a": "integer", "b": "integer"})
    async def subtract(arguments: JsonObject) -> int:
        """Subtract two numbers."""
        await asyncio.sleep(seconds)
        return int(arguments["a"] - arguments["b"])

    async with Client(server, tools=[add, subtract], auto_execute_tools=True) as client:
        print((await client.complete("What is 1 + 2?")).text)
        print((await client.complete("What is 5 - 2?")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
