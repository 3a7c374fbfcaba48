"""An answer that breaks off: what came is kept, and it can be asked again.

Prints:

    True True
    Hello!
"""

import asyncio

from desktop_agent import AgentError, AgentOptions, Client, MessageState


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        try:
            await client.complete("Break once")
        except AgentError as error:
            print(bool(error.remedy), client.history[-1].state is MessageState.INTERRUPTED)
        await client.continue_()
        while await client.receive() is not None:
            pass
        print(client.history[-1].text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
