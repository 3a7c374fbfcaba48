"""One model, asked directly: its events.

Prints:

    Hello!
    1
"""

import asyncio

from desktop_agent import AgentOptions, ContentDelta, Done, Provider


async def main(server: AgentOptions) -> None:
    async with await Provider.create(server.model, dialect=server.dialect, base_url=server.base_url) as provider:
        async for event in provider.stream("Hello"):
            if isinstance(event, ContentDelta):
                print(event.text, end="")
            elif isinstance(event, Done):
                print()
                print(provider.state().request_count)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
