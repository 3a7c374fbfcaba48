"""Where a history is cut."""

from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.agent.compaction import split_history
from desktop_agent.conversation.history import (
    COMPACTION_AUTHOR,
    compacted_view,
    group_messages,
    last_prompt_index,
    normalised_history,
)
from desktop_agent.types.messages import Message, Role
from tests.desktop_agent.conversation.histories import answer, histories, results, summary


def weigh(message: Message) -> int:
    return max(1, len(message.text))


def injected(text: str) -> Message:
    return Message.user(text).model_copy(update={"injected_by": "guard"})


def test_everything_before_the_last_prompt_is_summarised() -> None:
    history = [Message.user("a" * 100), answer("b" * 100), Message.user("c"), answer("", "1"), results("1")]
    split = split_history(history, None, weigh)
    assert split is not None
    assert split.older == tuple(history[:2])
    assert split.kept == tuple(history[2:])


def test_what_came_just_before_stays_too_while_it_is_short() -> None:
    history = [Message.user("a" * 900), answer("b" * 900), Message.user("c"), answer("d"), Message.user("e")]
    split = split_history(history, 10_000, weigh)
    assert split is not None
    assert split.kept == tuple(history[2:])


def test_a_small_window_keeps_only_what_must_stay() -> None:
    history = [Message.user("a" * 900), answer("b" * 900), Message.user("c" * 90), answer("d"), Message.user("e")]
    split = split_history(history, 100, weigh)
    assert split is not None
    assert split.kept == tuple(history[3:])


def test_the_persons_own_prompt_stays_behind_those_of_guards() -> None:
    history = [Message.user("a" * 900), answer("b" * 900), Message.user("c" * 400), answer("d" * 400), injected("go")]
    split = split_history(history, 2_000, weigh)
    assert split is not None
    assert split.kept == tuple(history[2:])


def test_a_first_prompt_and_what_follows_it_is_all_that_there_is() -> None:
    history = [Message.system("Be brief."), Message.user("go"), answer("", "1"), results("1")]
    assert split_history(history, 10, weigh) is None


def rounds(count: int, size: int) -> list[Message]:
    return [message for number in range(count) for message in (answer("x" * size, str(number)), results(str(number)))]


def test_long_work_on_one_prompt_is_summarised_but_for_the_newest_of_it() -> None:
    prompt, work = Message.user("go"), rounds(10, 100)
    split = split_history([prompt, *work], 1_000, weigh)
    assert split is not None
    assert (split.older, split.kept, split.prompt) == ((prompt, *work[:-2]), tuple(work[-2:]), prompt)


def test_the_newest_group_stays_however_long_it_is() -> None:
    prompt, work = Message.user("go"), rounds(2, 600)
    split = split_history([Message.user("old" * 50), answer("older" * 50), prompt, *work], 1_000, weigh)
    assert split is not None
    assert (split.kept, split.prompt) == (tuple(work[-2:]), prompt)


def test_instructions_at_the_end_are_no_newest_group() -> None:
    prompt, work, late = Message.user("go"), rounds(3, 400), Message.system("Be brief.")
    split = split_history([prompt, *work, late], 1_000, weigh)
    assert split is not None
    assert split.kept == (*work[-2:], late)


def test_a_little_work_behind_a_long_prompt_is_not_worth_a_summary() -> None:
    prompt = Message.user("x" * 900)
    assert split_history([prompt, *rounds(2, 20)], 1_000, weigh) is None
    assert split_history([prompt, *rounds(4, 20)], 1_000, weigh) is not None


def test_work_is_summarised_once_nothing_stands_before_its_prompt_but_a_summary() -> None:
    prompt, work = Message.user("go"), rounds(10, 10)
    earlier = [Message.user("Hi"), answer("Hello."), prompt, *work, summary(prompt.id, "x" * 500)]
    split = split_history(compacted_view(earlier), 1_000, weigh)
    assert split is not None
    assert split.prompt == prompt


def test_a_summary_alone_is_not_summarised_again() -> None:
    kept = Message.user("And now?")
    sent = compacted_view([Message.user("go"), answer("Yes."), kept, answer("Now."), summary(kept.id)])
    assert sent[0].injected_by == COMPACTION_AUTHOR
    assert split_history(sent, 10, weigh) is None


def test_a_history_without_a_prompt_is_left_alone() -> None:
    assert split_history([answer("a"), answer("b")], 10, weigh) is None
    assert split_history([], 10, weigh) is None


@given(histories(), st.none() | st.integers(1, 400))
def test_a_cut_is_between_groups_and_keeps_the_last_prompt(history: list[Message], window: int | None) -> None:
    sent = compacted_view(normalised_history(history))
    split = split_history(sent, window, weigh)
    if split is None:
        return
    assert sent[len(sent) - len(split.kept) :] == split.kept
    assert split.kept[0] in [group[0] for group in group_messages(sent)]
    prompt = last_prompt_index(sent)
    assert prompt is not None
    assert (sent[prompt] in split.kept) is (split.prompt is None)
    assert split.prompt in (None, sent[prompt])
    assert not any(message.role is Role.SYSTEM for message in split.older)
    begin = len(sent) - len(split.kept)
    assert split.older == tuple(message for message in sent[:begin] if message.role is not Role.SYSTEM)


@given(histories(), st.none() | st.integers(1, 400))
def test_what_is_cut_is_what_the_model_reads_afterwards(history: list[Message], window: int | None) -> None:
    split = split_history(compacted_view(normalised_history(history)), window, weigh)
    if split is None:
        return
    sent = compacted_view(normalised_history([*history, summary(split.kept[0].id, "Newest.")]))
    messages = [message for message in sent if message.role is not Role.SYSTEM]
    assert "Newest." in messages[0].text
    prompts = () if split.prompt is None else (split.prompt,)
    assert tuple(messages[1:]) == (*prompts, *(message for message in split.kept if message.role is not Role.SYSTEM))
