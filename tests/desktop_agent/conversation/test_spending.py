"""What a conversation has used."""

from desktop_agent.conversation.spending import Spending
from desktop_agent.vocabulary.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.provider_events import UsageUpdate
from desktop_agent.vocabulary.usage import Usage


def answered(**usage: float) -> Message:
    return Message(role=Role.ASSISTANT, usage=Usage.model_validate(usage) if usage else None)


def test_what_was_committed_is_summed() -> None:
    history = [
        Message.user("a"),
        answered(input_tokens=10, cost=0.25),
        Message.user("b"),
        answered(input_tokens=5, cost=1),
    ]
    spending = Spending(lambda: history)
    assert spending.total == Usage(input_tokens=15, cost=1.25)
    assert spending.is_whole


def test_nothing_known_is_not_nothing_used() -> None:
    assert Spending(list[Message]).total is None
    spending = Spending(lambda: [answered(), answered(input_tokens=5, cost=1)])
    assert spending.total == Usage(input_tokens=5, cost=1)
    assert not spending.is_whole


def test_the_answer_on_its_way_counts_once() -> None:
    history = [answered(input_tokens=10, cost=1)]
    spending = Spending(lambda: history)
    spending.take(TurnStarted("t", "m", "model"))
    spending.take(UsageUpdate(Usage(input_tokens=4)))
    assert spending.total == Usage(input_tokens=14, cost=1)
    assert not spending.is_whole
    spending.take(UsageUpdate(Usage(input_tokens=6, output_tokens=2, cost=0.5)))
    assert spending.total == Usage(input_tokens=16, output_tokens=2, cost=1.5)
    history.append(answered(input_tokens=6, output_tokens=2, cost=0.5))
    spending.take(RunFinished(RunEnd.COMPLETED))
    assert spending.total == Usage(input_tokens=16, output_tokens=2, cost=1.5)
    assert spending.is_whole


def test_another_branch_is_counted_anew() -> None:
    history = [answered(cost=1), answered(cost=2)]
    spending = Spending(lambda: history)
    del history[1]
    spending.take(TurnStarted("t", "m", "model"))
    assert spending.total == Usage(cost=1)
