"""Stop from another task: what was said is kept, and the client stays usable.

Prints:

    True interrupted
    Hello!
"""

import asyncio

from desktop_agent import AgentOptions, Client, ContentDelta, RunEnd


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        async for event in client.stream("Tell me a long story"):
            if isinstance(event, ContentDelta):
                asyncio.get_running_loop().call_soon(client.interrupt)
        print(client.ended is RunEnd.CANCELLED, client.history[-1].state)
        print((await client.complete("Hello")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
