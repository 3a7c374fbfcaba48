"""The agent asks the person, who answers while the run waits.

Prints:

    Red or blue? ('red', 'blue')
    True
"""

import asyncio

from desktop_agent import AgentOptions, Client, QuestionAsked


async def main(server: AgentOptions) -> None:
    async with Client(server, ask_user=True, auto_execute_tools=True) as client:
        answer = ""
        async for event in client.stream("Ask me"):
            if isinstance(event, QuestionAsked):
                (question,) = client.questions.list()
                print(question.question, question.choices)
                client.questions.answer(question.question_id, "blue")
        answer = client.history[-1].text
        print("blue" in answer)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
