"""A handle may be kept, called twice, and called when nothing is under way.

Prints:

    Hello!
    cancelled
"""

import asyncio

from desktop_agent import AgentOptions, Client


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        stop = client.interrupt_handle()
        stop()
        print((await client.complete("Hello")).text)
        await client.send("Tell me a long story")
        stop()
        stop()
        while await client.receive() is not None:
            pass
        print(client.ended)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
