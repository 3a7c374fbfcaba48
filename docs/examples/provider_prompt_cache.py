"""Have a server keep a prompt ready; where one cannot be asked for that, it is a typed error.

Prints:

    CachingNotSupported
"""

import asyncio

from desktop_agent import AgentOptions, CachingNotSupported, Provider


async def main(server: AgentOptions) -> None:
    async with await Provider.create(server.model, dialect=server.dialect, base_url=server.base_url) as provider:
        try:
            cached = await provider.prompt_cache("Hello " * 5000, seconds=60)
            print(cached.tokens, cached.expires_at)
        except CachingNotSupported as error:
            print(type(error).__name__)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
