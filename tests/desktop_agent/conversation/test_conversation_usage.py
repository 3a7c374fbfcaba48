"""What a conversation has used."""

from desktop_agent.conversation.history import ConversationUsage
from desktop_agent.types.engine_events import (
    ContextCompacted,
    ConversationTitled,
    CostUpdated,
    RetryScheduled,
    RunEnd,
    RunFinished,
    RunStarted,
    TurnStarted,
)
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Usage, UsageUpdate


def answer_with(**usage: float) -> Message:
    return Message(role=Role.ASSISTANT, usage=Usage.model_validate(usage) if usage else None)


def test_what_was_committed_is_summed() -> None:
    history = [
        Message.user("a"),
        answer_with(input_tokens=10, cost=0.25),
        Message.user("b"),
        answer_with(input_tokens=5, cost=1),
    ]
    spending = ConversationUsage(lambda: history)
    assert spending.total == Usage(input_tokens=15, cost=1.25)
    assert spending.is_complete


def test_nothing_known_is_not_nothing_used() -> None:
    assert ConversationUsage(list[Message]).total is None
    spending = ConversationUsage(lambda: [answer_with(), answer_with(input_tokens=5, cost=1)])
    assert spending.total == Usage(input_tokens=5, cost=1)
    assert not spending.is_complete


def test_the_answer_on_its_way_counts_once() -> None:
    history = [answer_with(input_tokens=10, cost=1)]
    spending = ConversationUsage(lambda: history)
    spending.take(TurnStarted("t", "m", "model"))
    spending.take(UsageUpdate(Usage(input_tokens=4)))
    assert spending.total == Usage(input_tokens=14, cost=1)
    assert not spending.is_complete
    spending.take(UsageUpdate(Usage(input_tokens=6, output_tokens=2, cost=0.5)))
    assert spending.total == Usage(input_tokens=16, output_tokens=2, cost=1.5)
    history.append(answer_with(input_tokens=6, output_tokens=2, cost=0.5))
    spending.take(RunFinished(RunEnd.COMPLETED))
    assert spending.total == Usage(input_tokens=16, output_tokens=2, cost=1.5)
    assert spending.is_complete


def test_each_attempt_on_its_way_counts() -> None:
    spending = ConversationUsage(list[Message])
    for sub_run in (None, "one"):
        spending.take(TurnStarted("t", "m", "model"), sub_run)
        for _ in range(2):
            spending.take(UsageUpdate(Usage(input_tokens=4, cost=1)), sub_run)
            spending.take(RetryScheduled(0.0, "busy", 1), sub_run)
    assert spending.total == Usage(input_tokens=16, cost=4)
    spending.take(RunFinished(RunEnd.COMPLETED), "one")
    assert spending.total == Usage(input_tokens=16, cost=4)


def test_another_branch_is_counted_anew() -> None:
    history = [answer_with(cost=1), answer_with(cost=2)]
    spending = ConversationUsage(lambda: history)
    del history[1]
    spending.take(TurnStarted("t", "m", "model"))
    assert spending.total == Usage(cost=1)


def test_what_a_summary_cost_counts() -> None:
    summary = Message(role=Role.SYSTEM, usage=Usage(cost=0.5))
    assert ConversationUsage(lambda: [Message.system("Be brief."), answer_with(cost=1), summary]).total == Usage(
        cost=1.5
    )


def test_what_was_paid_for_nothing_counts_once() -> None:
    history = [answer_with(cost=1)]
    spending = ConversationUsage(lambda: history)
    for _ in range(2):
        spending.take(RunStarted("m"))
        spending.take(CostUpdated(0.25))
        spending.take(TurnStarted("t", "m", "model"))
        spending.take(UsageUpdate(Usage(cost=2)))
        spending.take(CostUpdated(2.25))
        history.append(answer_with(cost=2))
        spending.take(RunFinished(RunEnd.COMPLETED))
    assert spending.total == Usage(cost=5.5)
    del history[1:]
    spending.take(RunStarted("m"))
    spending.take(RunFinished(RunEnd.COMPLETED))
    assert spending.total == Usage(cost=1.5)


def test_what_specialists_use_counts_each_for_itself() -> None:
    spending = ConversationUsage(lambda: [answer_with(cost=1)])
    spending.take(UsageUpdate(Usage(cost=0.25)), "one")
    spending.take(UsageUpdate(Usage(cost=0.5)), "two")
    assert spending.total == Usage(cost=1.75)
    spending.take(UsageUpdate(Usage(cost=0.75)), "two")
    spending.take(TurnStarted("t", "m", "model"), "two")
    spending.take(UsageUpdate(Usage(cost=2)), "two")
    spending.take(RunFinished(RunEnd.COMPLETED), "one")
    spending.take(RunFinished(RunEnd.COMPLETED), "two")
    spending.take(RunFinished(RunEnd.COMPLETED))
    assert spending.total == Usage(cost=4)
    spending.take(ContextCompacted("p", "In short.", usage=Usage(cost=0.5)), "two")
    assert spending.total == Usage(cost=4.5)
    assert spending.is_complete
    spending.take(UsageUpdate(Usage(input_tokens=1)), "three")
    spending.take(RunFinished(RunEnd.COMPLETED), "three")
    assert not spending.is_complete


def test_what_a_title_cost_counts_beside_the_answers() -> None:
    spending = ConversationUsage(lambda: [answer_with(input_tokens=10, cost=1)])
    spending.take(ConversationTitled("About cats", Usage(input_tokens=4, cost=0.25)))
    assert spending.total == Usage(input_tokens=14, cost=1.25)
    assert spending.is_complete
    spending.take(ConversationTitled("About cats", Usage(input_tokens=4)))
    assert not spending.is_complete


def test_what_a_title_used_before_it_was_opened_is_counted_and_stays_on_every_branch() -> None:
    history = [answer_with(input_tokens=5, cost=1)]
    spending = ConversationUsage(lambda: history, beside=Usage(cost=0.25))
    assert spending.total is not None
    assert spending.total.cost == 1.25
    history[:] = [answer_with(input_tokens=5, cost=2)]
    spending.count_branch()
    assert spending.total.cost == 2.25
