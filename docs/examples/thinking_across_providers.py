"""A conversation that changes the provider: reasoning goes back only to who made it.

Prints:

    True Hello again!
    Hello again!
"""

import asyncio

from desktop_agent import AgentOptions, Client, Thinking


async def main(server: AgentOptions) -> None:
    root = server.base_url.removesuffix("/v1")
    other = server.with_values(dialect="gemini", base_url=root)
    if server.dialect == "gemini":
        other = server.with_values(dialect="anthropic", base_url=root)
    async with Client(server) as first:
        await first.complete("Hello")
        thought = any(isinstance(block, Thinking) for message in first.history for block in message.blocks)
        async with Client(other) as second:
            await second.edit_history(first.history)
            print(thought, (await second.complete("Hello again")).text)
            await first.edit_history(second.history)
        print((await first.complete("Hello once more")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
