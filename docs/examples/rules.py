"""What rules deny never runs, whoever allowed it.

Prints:

    [True]
"""

import asyncio

from desktop_agent import AgentOptions, Client, Outcome, Rule, RuleEffect, RuleScope, ToolResult, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    rules = [Rule(effect=RuleEffect.DENY, tool="*", scope=RuleScope.ALWAYS)]
    async with Client(server, tools=[add], auto_execute_tools=True, rules=rules, approver="always") as client:
        answer = await client.complete("What is 1 + 2?")
        print([block.outcome is Outcome.DENIED for block in answer.blocks if isinstance(block, ToolResult)])


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
