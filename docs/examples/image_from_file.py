"""A picture from the bytes of a file; what it contains decides what it is.

Prints:

    I see PNG 2 x 1.
"""

import asyncio
import base64

from desktop_agent import AgentOptions, Client, Message

PIXELS = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP4z8DAAMQACf4B/zUBqtoAAAAASUVORK5CYII="


async def main(server: AgentOptions) -> None:
    data = base64.b64decode(PIXELS)
    async with Client(server) as client:
        answer = await client.complete(Message.user_with_file("What is this?", data, "two pixels.jpg"))
        print(answer.text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
