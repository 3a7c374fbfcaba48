"""The question goes to somebody else, for example a web page, and the answer comes later.

Prints:

    asked about add
    It is 3.
"""

import asyncio

from desktop_agent import AgentOptions, AllowOnce, Approval, Client, Decision, Rule, RuleEffect, RuleScope, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    questions: asyncio.Queue[tuple[Approval, asyncio.Future[Decision]]] = asyncio.Queue()

    async def pass_on(approval: Approval) -> Decision:
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        await questions.put((approval, answer))
        return await answer

    async def somebody() -> None:
        approval, answer = await questions.get()
        print("asked about", approval.tool_use.name)
        answer.set_result(AllowOnce())

    person = asyncio.create_task(somebody())
    rules = [Rule(effect=RuleEffect.ASK, tool="add", scope=RuleScope.ALWAYS)]
    async with Client(server, tools=[add], auto_execute_tools=True, rules=rules, approver=pass_on) as client:
        print((await client.complete("What is 1 + 2?")).text)
    await person


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
