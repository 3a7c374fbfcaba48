"""What keeps a model from answering is raised by the call, typed, with a remedy.

Prints:

    base_url: this is not a web address such as http://127.0.0.1:8080/v1.
    ConnectionFailed True 1
"""

import asyncio

from desktop_agent import AgentOptions, Client, ConnectionFailed, WrongUse


async def main(server: AgentOptions) -> None:
    try:
        AgentOptions(model="m", base_url="ftp://example.org")
    except WrongUse as error:
        print(error)
    async with Client(server, base_url="http://127.0.0.1:9/v1") as client:
        try:
            await client.complete("Hello")
        except ConnectionFailed as error:
            print(type(error).__name__, error.retryable, len(client.history))


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
