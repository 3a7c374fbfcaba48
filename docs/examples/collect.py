"""From a stream to the whole: words, or everything.

Prints:

    Hello!
    Hello again! completed ['text']
"""

import asyncio

from desktop_agent import AgentOptions, Client, collect_response, collect_text


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        print(await collect_text(client.stream("Hello")))
        response = await collect_response(client.stream("Hello again"))
        print(response.text, response.end, [block.type for block in response.blocks if block.type == "text"])


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
