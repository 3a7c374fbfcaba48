"""Forget everything, also in the middle of an answer; the options stay.

Prints:

    () Be brief.
    Hello!
"""

import asyncio

from desktop_agent import AgentOptions, Client


async def main(server: AgentOptions) -> None:
    async with Client(server, system_prompt="Be brief.") as client:
        await client.send("Tell me a long story")
        await client.clear_history()
        print(client.history, client.options.system_prompt)
        print((await client.complete("Hello")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
