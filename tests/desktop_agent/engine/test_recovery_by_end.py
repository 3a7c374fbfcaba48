"""What broke off in a long conversation: recovered by its end, it is as if all of it had been loaded."""

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from desktop_agent.conversation.history import COMPACTION_AUTHOR
from desktop_agent.engine.recovery import Recovery, recover
from desktop_agent.storage.records import LoadedConversation
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Summary, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ContextCompacted,
    CostUpdated,
    Envelope,
    QuestionAnswered,
    QuestionAsked,
    RunStarted,
    ToolFinished,
    ToolProgress,
    ToolResultsReceived,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.messages import Message, Role, now
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from tests.frame.examples import examples


class LongRun:
    """A run of many turns, as chance has it, and what of it was written when its process died."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.messages: list[Message] = []
        self.rows: list[Envelope] = []
        self._at = now()
        self._ids = 0

    def fill(self) -> None:
        for number in range(20):
            self.messages += [Message.user(f"p{number}"), Message.assistant(f"a{number}")]
        prompt = Message.user("go")
        self.messages.append(prompt)
        self.add(RunStarted(prompt.id))
        turns = self.chance.randrange(1, 40)
        for number in range(turns):
            self.turn(is_last=number == turns - 1)

    def turn(self, *, is_last: bool) -> None:
        id_ = self.new_id()
        turn = f"turn {id_}"
        usage = Usage(total_tokens=self.chance.randrange(100), cost=self.chance.random())
        self.add(TurnStarted(turn, id_, "m"), turn)
        self.add(ContentDelta(f"answer {id_}"), turn)
        self.add(UsageUpdate(usage), turn)
        self.add(CostUpdated(30 * self.chance.random()), turn)
        if self.chance.random() < (0.1 if is_last else 0.15):
            # It failed, and the next attempt is another turn; or it is what broke off.
            return
        if self.chance.random() < 0.1:
            self.compact(turn)
        calls = [ToolUse(id=self.new_id(), name="act", input={}) for _ in range(self.chance.randrange(1, 3))]
        blocks = (Text(text=f"answer {id_}"), *calls)
        self.messages.append(Message(id=id_, role=Role.ASSISTANT, blocks=blocks, usage=usage))
        results = [result for call in calls if (result := self.call(call, turn, breaks_off=is_last)) is not None]
        if len(results) == len(calls):
            self.messages.append(Message.tool_results(results))
            self.add(ToolResultsReceived(len(results)), turn)

    def call(self, call: ToolUse, turn: str, *, breaks_off: bool) -> ToolResult | None:
        if self.chance.random() < 0.3:
            self.add(ApprovalRequested(f"approval {call.id}", call.id, "d"), turn)
            self.add(ApprovalResolved(f"approval {call.id}", call.id, "allow_once", "person", digest="d"), turn)
        if breaks_off and self.chance.random() < 0.5:
            return None
        self.add(ToolStarted(call.id, {}), turn)
        if self.chance.random() < 0.2:
            self.add(QuestionAsked(call.id, "Which?"), turn)
            self.add(QuestionAnswered(call.id, "this"), turn)
        self.add(ToolProgress(call.id, "works"), turn)
        if breaks_off and self.chance.random() < 0.8:
            return None
        result = ToolResult(tool_use_id=call.id, content=(Text(text=f"result of {call.id}"),))
        self.add(ToolFinished(call.id, result), turn)
        return result

    def compact(self, turn: str) -> None:
        text, first_kept = f"summary {self.new_id()}", self.messages[-1].id
        self.add(ContextCompacted(first_kept, text), turn)
        block = Summary(text=text, first_kept_id=first_kept)
        used = Usage(total_tokens=7, cost=0.5)
        self.messages.append(
            Message(id=self.new_id(), role=Role.SYSTEM, blocks=(block,), injected_by=COMPACTION_AUTHOR, usage=used)
        )

    def add(self, event: Any, turn: str | None = None) -> None:
        self._at += timedelta(seconds=self.chance.randrange(9))
        self.rows.append(Envelope(len(self.rows) + 1, "run", None, turn, self._at, event))

    def new_id(self) -> str:
        self._ids += 1
        return f"id-{self._ids}"


def recovered(loaded: LoadedConversation) -> Recovery:
    recovery = recover(loaded.messages, loaded.journal, None, loaded.below, loaded.earlier)
    # The results that are made here have a moment and an id of their own.
    calls = recovery.open_calls
    messages = tuple(message.model_copy(update={"id": "", "created_at": None}) for message in recovery.messages)
    if calls is not None:
        results = calls.results.model_copy(update={"id": "", "created_at": None})
        calls = replace(calls, results=results)
    return replace(recovery, messages=messages, open_calls=calls)


async def test_what_is_recovered_by_the_end_is_what_all_of_it_tells(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    open_calls = 0
    # The first that ends with open calls is behind twenty.
    for seed in range(max(examples(120), 30)):
        run = LongRun(random.Random(seed))
        run.fill()
        record = await store.create_conversation(title=f"seed {seed}", model="m")
        await store.commit(record.id, *run.messages)
        await store.append_journal(record.id, run.rows)
        whole, end = await store.load(record.id), await store.load(record.id, 4)
        assert (len(whole.messages), len(whole.journal)) == (len(run.messages), len(run.rows))
        assert len(end.messages) < len(whole.messages)
        expected = recovered(whole)
        assert recovered(end) == expected
        open_calls += expected.open_calls is not None
    await store.close()
    assert open_calls


async def test_of_a_long_run_the_journal_is_read_but_for_what_counts_nothing(tmp_path: Path) -> None:
    run = LongRun(random.Random(1))
    run.chance.random = lambda: 0.99  # type: ignore[method-assign]  # nothing fails, and nobody is asked
    for _ in range(50):
        run.turn(is_last=False)
    store = await Store.open(tmp_path)
    record = await store.create_conversation(title="t", model="m")
    await store.commit(record.id, *run.messages)
    await store.append_journal(record.id, run.rows)
    loaded = await store.load(record.id, 4)
    followed, _ = await store.begin_following(record.id, 4)
    await store.close()
    turns = [row.event.turn_id for row in run.rows if isinstance(row.event, TurnStarted)]
    assert {row.turn_id for row in loaded.journal if isinstance(row.event, ContentDelta)} == set(turns[-1:])
    finished = [row for row in loaded.journal if isinstance(row.event, ToolFinished)]
    assert {row.turn_id for row in finished if row.event.result.content} == set(turns[-1:])
    assert not any(message.blocks for message in loaded.earlier)
    assert {row.turn_id for row in followed.journal} == set(turns[-1:])
    assert followed.earlier == ()
