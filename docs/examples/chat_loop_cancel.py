"""Cancel a loop from within, which closes the connection.

Prints:

    cancelled False
"""

import asyncio

from desktop_agent import AgentOptions, ContentDelta, LoopDone, Message, Provider


async def main(server: AgentOptions) -> None:
    async with await Provider.create(server.model, dialect=server.dialect, base_url=server.base_url) as provider:
        handle = provider.chat_loop([Message.user("Tell me a long story")])
        async for step in handle:
            if isinstance(step, ContentDelta):
                handle.cancel()
            elif isinstance(step, LoopDone):
                print(step.end, handle.is_active)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
