"""Several addresses of one service: the next is asked when one is down.

Prints:

    Hello!
"""

import asyncio
from urllib.parse import urlsplit

from desktop_agent import AgentOptions, Client


async def main(server: AgentOptions) -> None:
    down = server.base_url.replace(str(urlsplit(server.base_url).port), "9")
    async with Client(server, base_url=down, mirrors=[server.base_url]) as client:
        print((await client.complete("Hello")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
