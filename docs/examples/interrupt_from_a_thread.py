"""Stop from another thread.

Prints:

    True Tell me a long story
"""

import asyncio
import threading

from desktop_agent import AgentOptions, Client, RunEnd


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        await client.send("Tell me a long story")
        stopper = threading.Thread(target=client.interrupt_handle().interrupt)
        stopper.start()
        while await client.receive() is not None:
            pass
        stopper.join()
        print(client.ended is RunEnd.CANCELLED, client.history[0].text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
