"""Somebody else answers a question of the agent, when there is time: a web page, for example.

Prints:

    True
"""

import asyncio

from desktop_agent import AgentOptions, Client, Envelope, QuestionAsked


async def main(server: AgentOptions) -> None:
    asked = asyncio.Event()

    def listen(envelope: Envelope) -> None:
        if isinstance(envelope.event, QuestionAsked):
            asked.set()

    async def somebody(client: Client) -> None:
        await asked.wait()
        for question in client.questions.list():
            client.questions.answer(question.question_id, "red")

    async with Client(server, ask_user=True, auto_execute_tools=True, listener=listen) as client:
        person = asyncio.create_task(somebody(client))
        print("red" in (await client.complete("Ask me")).text)
        await person


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
