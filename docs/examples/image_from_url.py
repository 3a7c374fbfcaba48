"""A picture by its address, and how closely to look; the server may fetch it.

Prints:

    ['text', 'image']
    “file:///etc/passwd” is not a web address.
"""

import asyncio

from desktop_agent import AgentOptions, ImageDetail, ImageRefused, Message, Provider


async def main(server: AgentOptions) -> None:
    message = Message.user_with_image_detail("What is this?", "https://example.org/cat.png", ImageDetail.LOW)
    async with await Provider.create(server.model, dialect=server.dialect, base_url=server.base_url) as provider:
        request = provider.request(message)
        print([block.type for block in request.messages[0].blocks])
    try:
        Message.user_with_image("What is this?", "file:///etc/passwd")
    except ImageRefused as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
