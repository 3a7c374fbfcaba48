"""How long a question is, before it is asked.

Prints:

    True
"""

import asyncio

from desktop_agent import AgentOptions, Provider


async def main(server: AgentOptions) -> None:
    async with await Provider.create(server.model, dialect=server.dialect, base_url=server.base_url) as provider:
        short, long = await provider.count_tokens("Hello"), await provider.count_tokens("Hello " * 500)
        print(0 < short.tokens < long.tokens)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
