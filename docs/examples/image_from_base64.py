"""A picture in base64.

Prints:

    I see PNG 2 x 1.
"""

import asyncio

from desktop_agent import AgentOptions, Client, Message

PIXELS = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP4z8DAAMQACf4B/zUBqtoAAAAASUVORK5CYII="


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        await client.send_message(Message.user_with_base64_image("What is this?", PIXELS, "image/png"))
        while await client.receive() is not None:
            pass
        print(client.history[-1].text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
