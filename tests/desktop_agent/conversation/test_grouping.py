"""Groups of messages, which no cut separates."""

from hypothesis import given

from desktop_agent.conversation.history import group_messages, last_prompt_index
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import StopReason
from tests.desktop_agent.conversation.histories import answer, histories, results


def test_an_answer_stays_with_its_results_and_a_prompt_alone() -> None:
    prompt, calls, tool_results, end = Message.user("go"), answer("", "a"), results("a"), answer("Done.")
    assert group_messages([prompt, calls, tool_results, end]) == ((prompt,), (calls, tool_results), (end,))


def test_results_that_came_in_two_messages_stay_together() -> None:
    history = [answer("", "a", "b"), results("a"), results("b")]
    assert group_messages(history) == (tuple(history),)


def test_an_interrupted_answer_stays_with_what_it_went_on_with() -> None:
    history = [answer("Half", stop=StopReason.PAUSE_TURN), answer("whole", "a"), results("a")]
    assert group_messages(history) == (tuple(history),)


def test_answers_after_each_other_are_two() -> None:
    history = [answer("One", stop=StopReason.END_TURN), answer("Two")]
    assert len(group_messages(history)) == 2


@given(histories())
def test_groups_are_the_history_in_its_order(history: list[Message]) -> None:
    groups = group_messages(history)
    assert [message for group in groups for message in group] == history
    assert all(groups)


@given(histories())
def test_no_group_begins_with_the_results_of_an_answer(history: list[Message]) -> None:
    for before, group in zip(group_messages(history), group_messages(history)[1:], strict=False):
        assert group[0].role is not Role.TOOL or before[-1].role not in {Role.ASSISTANT, Role.TOOL}


def injected(text: str) -> Message:
    return Message.user(text).model_copy(update={"injected_by": "guard"})


def test_what_a_guard_wrote_is_not_the_last_prompt() -> None:
    assert last_prompt_index([Message.user("go"), answer("Done."), injected("Really?"), answer("Yes.")]) == 0


def test_where_nobody_wrote_the_newest_prompt_of_all_counts() -> None:
    assert last_prompt_index([injected("a"), answer("Done."), injected("b"), answer("Yes.")]) == 2


@given(histories())
def test_the_last_prompt_is_the_last(history: list[Message]) -> None:
    index = last_prompt_index(history)
    prompts = [message for message in history if message.role is Role.USER]
    own = [message for message in prompts if message.injected_by is None]
    assert (own or prompts)[-1:] == ([] if index is None else [history[index]])
