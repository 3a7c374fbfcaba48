"""What a caller may write: no checker finds anything in it."""

from collections.abc import Sequence

import desktop_agent
from desktop_agent import (
    AgentOptions,
    AllowOnce,
    Approval,
    Client,
    CommandPattern,
    Decision,
    Deny,
    Effect,
    Event,
    Guard,
    GuardContinue,
    GuardMoment,
    GuardPass,
    HookAsk,
    HookDeny,
    Hooks,
    JsonObject,
    LoopDone,
    Message,
    Mode,
    PreToolUse,
    Provider,
    ProviderConfig,
    ReasoningEffort,
    Role,
    Rule,
    RuleEffect,
    RunningCall,
    Specialist,
    Text,
    ToolCallsRequested,
    ToolClass,
    ToolResult,
    TwoPhaseAgent,
    query,
    tool,
)


@tool
def double(number: int) -> int:
    """Double it."""
    return 2 * number


@tool(name="shout", tool_class=ToolClass.READ_ONLY, effects=[Effect.READ], timeout=3)
async def louder(text: str, call: RunningCall) -> str:
    """Shout it."""
    call.progress("…")
    return text.upper()


async def look(moment: PreToolUse) -> HookAsk | HookDeny | None:
    return HookAsk("It writes.") if moment.name == "write_file" else None


async def decide(approval: Approval) -> Decision:
    return AllowOnce() if approval.tool_use.name == "double" else Deny(message=approval.reason)


async def check(moment: GuardMoment) -> GuardContinue | GuardPass:
    return GuardContinue("Go on.") if moment.iteration == 0 else GuardPass()


options = AgentOptions(
    model="m",
    api_key="sk-1",
    tools=[double, louder],
    auto_execute_tools=True,
    hooks=Hooks().add_pre_tool_use(look),
    approver=decide,
    guards=[Guard("again", check, max_iterations=2)],
    rules=[Rule(effect=RuleEffect.DENY, tool="run_command", pattern=CommandPattern(words=["rm"]), also=["shell"])],
    modes=[Mode(name="careful", title="Careful", rules=[Rule(effect=RuleEffect.ASK, tool="*")])],
    mode="careful",
    specialists=[Specialist(name="s", description="d", system_prompt="p", tools=["double"])],
    config=ProviderConfig(stop_sequences=["END"], reasoning=ReasoningEffort(level="low")),
)
by_preset: AgentOptions = AgentOptions.preset("ollama", model="m", tools=(double,))
by_builder: AgentOptions = AgentOptions.builder().preset("vllm").model("m").api_key("k").tools(double, louder).build()
hooks: Hooks = Hooks(pre_tool_use=[look])
changed: AgentOptions = options.with_values(system_prompt="Be brief.", tools=[])
named: type[desktop_agent.Client] = Client


def words(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if event.type == "content_delta")


def answer(call_id: str, value: JsonObject) -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=[Text(text=str(value))])


async def main() -> None:
    prompt = Message(role=Role.USER, blocks=[Text(text="Hello")])
    async for block in query(prompt, model="m", api_key="k", tools=[double]):
        if block.type == "text":
            print(block.text)
    print(await double(2), await double(number=2))
    async with Client(options, system_prompt="Be brief.") as client:
        print(words([event async for event in client.stream("Hello")]))
    async with TwoPhaseAgent(options, specialist="s", max_tool_iterations=3) as agent:
        print(agent.history)
    async with await Provider.create("m", "k", base_url="http://127.0.0.1:1/v1", config=ProviderConfig()) as provider:
        handle = provider.chat_loop([Message.user("hi")], [double])
        async for step in handle:
            if isinstance(step, ToolCallsRequested):
                handle.submit_tool_results([answer(call.id, call.input) for call in step.tool_calls])
            elif isinstance(step, LoopDone):
                print(step.total_usage, step.finish_reason)
            else:
                print(step.type)
