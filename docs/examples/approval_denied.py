"""Without an approver nobody is there, so what must be asked about is denied; the model goes on.

Prints:

    True
"""

import asyncio

from desktop_agent import AgentOptions, Approval, Client, Decision, Deny, Rule, RuleEffect, RuleScope, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    async def no(approval: Approval) -> Decision:
        return Deny(message="Use your head.")

    rules = [Rule(effect=RuleEffect.ASK, tool="add", scope=RuleScope.ALWAYS)]
    async with Client(server, tools=[add], auto_execute_tools=True, rules=rules, approver=no) as client:
        print("Use your head." in (await client.complete("What is 1 + 2?")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
