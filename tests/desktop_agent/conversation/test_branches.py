"""Branches of a conversation, what the transcript keeps of another one, and what that cost."""

from collections.abc import Sequence

import pytest

from desktop_agent.conversation.branches import Branches, Versions
from desktop_agent.conversation.history import ConversationUsage
from desktop_agent.conversation.items import NoticeItem, Removed
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import COMPACTED
from desktop_agent.types.blocks import Summary, Text, ToolUse
from desktop_agent.types.checkpoints import CheckpointedCall
from desktop_agent.types.engine_events import CheckpointRestored, ContextCompacted, Envelope
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role, now
from desktop_agent.types.provider_events import Usage


def message_of(id_: str, role: Role = Role.USER, cost: float | None = None) -> Message:
    return Message(
        id=id_, role=role, blocks=(Text(text=id_),), usage=None if cost is None else Usage(output_tokens=1, cost=cost)
    )


def places(branches: Branches, messages: Sequence[Message]) -> dict[str, tuple[tuple[str, ...], int]]:
    return {id_: (versions.ids, versions.index) for id_, versions in branches.versions(messages).items()}


def test_versions_stand_at_the_first_message_that_people_see() -> None:
    summary = Message(id="s", role=Role.SYSTEM, blocks=(Summary(text="S", first_kept_id="a"),))
    guard = message_of("g").model_copy(update={"injected_by": "guard"})
    branch = [
        message_of("a"),
        message_of("b", Role.ASSISTANT),
        summary,
        guard,
        message_of("c"),
        message_of("d", Role.ASSISTANT),
    ]
    branches = Branches({"b": ("s", "x"), "c": ("y", "d")}, stored=True)
    assert places(branches, branch) == {"c": (("s", "x"), 0), "d": (("y", "d"), 1)}
    assert places(branches, [*branch[:2], message_of("x")]) == {"x": (("s", "x"), 1)}
    assert places(branches, branch[:2]) == {}


def test_what_other_branches_have_below_the_last_message_that_people_see() -> None:
    guard = message_of("g").model_copy(update={"injected_by": "guard"})
    branch = [message_of("a"), message_of("b", Role.ASSISTANT)]
    branches = Branches({None: ("a",), "a": ("b", "x"), "b": ("c", "g", "d"), "g": ("e",)}, stored=True)
    assert branches.continuations(branch) == ("c", "g", "d")
    assert branches.continuations([*branch, guard]) == ("c", "d", "e")
    assert branches.continuations([*branch, message_of("c")]) == ()
    assert branches.continuations(branch[:1]) == ("b", "x")
    assert branches.continuations([]) == ("a",)


@pytest.mark.parametrize(("index", "before", "after"), [(0, None, "b"), (1, "a", "c"), (2, "b", None)])
def test_one_steps_from_version_to_version(index: int, before: str | None, after: str | None) -> None:
    versions = Versions(("a", "b", "c"), index)
    assert (versions.neighbour(-1), versions.neighbour(1)) == (before, after)


def test_what_is_kept_of_a_transcript_keeps_its_notices() -> None:
    prompt, answer = message_of("a"), message_of("b", Role.ASSISTANT)
    summary = Message(id="s", role=Role.SYSTEM, blocks=(Summary(text="In short.", first_kept_id="a"),))
    transcript = Transcript([prompt])
    transcript.apply(Envelope(1, "r", None, None, now(), ContextCompacted("a", "In short.")))
    transcript.add_notice(Sentence("Trying again."))
    transcript.add_message(answer)
    transcript.add_notice(Sentence("It broke off."))
    assert transcript.cut_after([prompt, summary]) == [Removed(2, 3)]
    (_, notice) = transcript
    assert isinstance(notice, NoticeItem)
    assert notice.sentence == COMPACTED
    assert transcript.cut_after([prompt, summary]) == []


def test_a_removed_call_is_not_marked_any_more() -> None:
    call = Message(id="b", role=Role.ASSISTANT, blocks=(ToolUse(id="1", name="write_file"),))
    transcript = Transcript([message_of("a"), call])
    transcript.mark_saved_calls([CheckpointedCall("b", "1", "checkpoint")])
    transcript.cut_after([message_of("a")])
    restored = CheckpointRestored("checkpoint", ())
    assert transcript.apply(Envelope(1, "r", None, None, now(), restored)) == []
    assert transcript.saved_calls == []


def test_another_branch_of_the_same_length_costs_what_it_costs() -> None:
    history = [message_of("a"), message_of("b", Role.ASSISTANT, 1.0)]
    spending = ConversationUsage(lambda: history)
    assert spending.total is not None
    history = [message_of("a"), message_of("c", Role.ASSISTANT, 5.0)]
    spending.count_branch()
    assert spending.total.cost == 5.0
