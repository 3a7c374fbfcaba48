"""Calls wait until somebody decides, whoever that is and whenever it is.

Prints:

    add waits
    TAKEN
    It is 3.
"""

import asyncio

from desktop_agent import AgentOptions, AllowOnce, ApprovalRequested, Client, Rule, RuleEffect, RuleScope, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    rules = [Rule(effect=RuleEffect.ASK, tool="add", scope=RuleScope.ALWAYS)]
    async with Client(server, tools=[add], auto_execute_tools=True, rules=rules, approver="wait") as client:
        async for event in client.stream("What is 1 + 2?"):
            if isinstance(event, ApprovalRequested):
                (approval,) = client.approvals.list()
                print(approval.tool_use.name, "waits")
                print(client.approvals.answer(approval.approval_id, AllowOnce()).status.name)
        print(client.history[-1].text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
