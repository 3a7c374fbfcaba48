"""A conversation that is kept in a file and gone on with later, with the state of its reasoning and its pictures.

Prints:

    2 messages are kept
    Hello again!
"""

import asyncio
import tempfile
from pathlib import Path

from pydantic import TypeAdapter

from desktop_agent import AgentOptions, Client, Message

MESSAGES = TypeAdapter(tuple[Message, ...])


async def main(server: AgentOptions) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "conversation.json"
        async with Client(server) as client:
            await client.complete("Hello")
            print(len(client.history), "messages are kept")
            file.write_bytes(MESSAGES.dump_json(client.history))

        kept = MESSAGES.validate_json(file.read_bytes())
        async with Client(server) as client:
            await client.edit_history(kept)
            print((await client.complete("Hello again")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
