"""Every event with its place, also of what runs beside.

Prints:

    True True
"""

import asyncio

from desktop_agent import AgentOptions, Client, Envelope


async def main(server: AgentOptions) -> None:
    places: list[int] = []

    def listen(envelope: Envelope) -> None:
        if envelope.run_id:
            places.append(envelope.seq)

    async with Client(server, listener=listen) as client:
        await client.complete("Hello")
        print(places == list(range(places[0], places[0] + len(places))), len(places) > 5)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
