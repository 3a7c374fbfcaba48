"""What a model reads of a history of which a part was summarised."""

from hypothesis import given

from desktop_agent.conversation.history import (
    COMPACTION_AUTHOR,
    compacted_view,
    group_messages,
    last_prompt_index,
    normalised_history,
)
from desktop_agent.types.blocks import Summary
from desktop_agent.types.messages import Message, Role
from tests.desktop_agent.conversation.histories import answer, histories, results, summary


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages]


def test_a_history_without_a_summary_is_sent_as_it_is() -> None:
    history = [Message.user("go"), answer("Yes.")]
    assert compacted_view(history) == tuple(history)


def test_the_summary_stands_for_what_came_before_the_cut() -> None:
    newest = Message.user("And now?")
    first, *rest = compacted_view([Message.user("go"), answer("Yes."), newest, summary(newest.id), answer("Now.")])
    assert (first.role, first.injected_by) == (Role.USER, COMPACTION_AUTHOR)
    assert "In short." in first.text
    assert texts(tuple(rest)) == ["And now?", "Now."]


def test_instructions_stay_in_front() -> None:
    newest = Message.user("And now?")
    sent = compacted_view([Message.system("Be brief."), Message.user("go"), answer("Yes."), newest, summary(newest.id)])
    assert sent[0].text == "Be brief."
    assert sent[1].injected_by == COMPACTION_AUTHOR
    assert len(sent) == 3


def test_the_newest_summary_counts() -> None:
    second, third = Message.user("two"), Message.user("three")
    history = [Message.user("one"), answer(), second, summary(second.id, "Old."), answer(), third]
    sent = compacted_view([*history, summary(third.id, "New.")])
    assert "New." in sent[0].text
    assert "Old." not in "".join(texts(sent))
    assert texts(sent[1:]) == ["three"]


def test_a_cut_between_a_call_and_its_result_is_moved_before_both() -> None:
    calls, tool_results, after = answer("", "a"), results("a"), Message.user("go on")
    sent = compacted_view([Message.user("go"), calls, tool_results, after, summary(tool_results.id)])
    assert sent[1:] == (calls, tool_results, after)


def test_a_prompt_whose_work_is_summarised_stands_word_for_word_behind_the_summary() -> None:
    prompt, first, end = Message.user("go"), [answer("", "1"), results("1")], answer("Yes.")
    shown, *rest = compacted_view([Message.user("Hi"), answer("Hello."), prompt, *first, end, summary(end.id)])
    assert rest == [prompt, end]
    assert "In short." in shown.text
    assert "is not to be done again" in shown.text


def test_what_a_guard_wrote_is_summarised_with_the_rest() -> None:
    prompt, end = Message.user("go"), answer("Yes.")
    guard = Message.user("Really?").model_copy(update={"injected_by": "guard"})
    assert compacted_view([prompt, answer("Done."), guard, end, summary(end.id)])[1:] == (prompt, end)


def test_a_specialists_task_stays() -> None:
    task = Message.user("Find it.").model_copy(update={"injected_by": "agent"})
    end = answer("Yes.")
    assert compacted_view([task, answer("Hm."), end, summary(end.id)])[1:] == (task, end)


def test_a_summary_that_was_moved_before_what_it_summarised_takes_no_prompt_away() -> None:
    prompt, end = Message.user("go"), answer("Yes.")
    assert compacted_view([answer("Hello."), summary(end.id), prompt, end])[1:] == (prompt, end)


def test_what_comes_later_does_not_change_what_stands_in_front() -> None:
    end = answer("Yes.")
    history = [Message.user("go"), answer("Hm."), end, summary(end.id)]
    before, later = compacted_view(history), Message.user("And now?")
    assert compacted_view([*history, later, answer("Now.")])[:-1] == (*before, later)


def test_a_summary_whose_first_kept_message_is_gone_stands_for_nothing() -> None:
    history = [Message.user("go"), answer("Yes.")]
    assert compacted_view([*history, summary("gone")]) == tuple(history)


def holds_summary(message: Message) -> bool:
    return any(isinstance(block, Summary) for block in message.blocks)


@given(histories())
def test_any_cut_splits_no_group_and_loses_no_prompt(history: list[Message]) -> None:
    sent = compacted_view(history)
    messages = [message for message in history if not holds_summary(message)]
    assert not any(map(holds_summary, sent))
    sent_ids = {message.id for message in sent if message.injected_by != COMPACTION_AUTHOR}
    for group in group_messages(messages):
        inside = [message.id in sent_ids for message in group]
        assert all(inside) or not any(inside)
    prompt = last_prompt_index(messages)
    assert prompt is None or messages[prompt] in sent
    assert {message.id for message in messages if message.role is Role.SYSTEM} <= sent_ids
    for is_instruction in (True, False):
        mine = [
            message
            for message in messages
            if message.id in sent_ids and (message.role is Role.SYSTEM) is is_instruction
        ]
        assert mine == [
            message for message in sent if message.id in sent_ids and (message.role is Role.SYSTEM) is is_instruction
        ]


@given(histories())
def test_what_is_sent_is_sent_like_that_again(history: list[Message]) -> None:
    sent = compacted_view(history)
    assert compacted_view(sent) == sent
    assert compacted_view(history) == sent


@given(histories())
def test_a_repaired_history_stays_repaired(history: list[Message]) -> None:
    sent = compacted_view(normalised_history(history))
    assert normalised_history(sent) == sent


@given(histories(summaries=False))
def test_without_a_summary_nothing_changes(history: list[Message]) -> None:
    assert compacted_view(history) == tuple(history)
