"""A random world around one conversation: what the person does, what the model says, when the program dies."""

import random
import sqlite3
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from desktop_agent.agent.compaction import INSTRUCTIONS
from desktop_agent.conversation.items import UserItem
from desktop_agent.engine.session import Session
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.engine_events import (
    ApprovalResolved,
    Envelope,
    ModeChanged,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolResultsReceived,
    TurnStarted,
    UserMessageReturned,
)
from desktop_agent.types.errors import ToolInputInvalid, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.provider_events import ContentDelta, Done, ThinkingBlock
from desktop_agent.types.providers import ModelRequest
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, Decision, Deny, DenyAndStop
from tests.invariants import moments
from tests.invariants.checks import (
    Broken,
    history_survives,
    live_equals_replayed,
    request_is_whole,
    require,
    results_are_of_their_calls,
    results_follow_calls,
    runs_are_whole,
    text_is_what_was_streamed,
)
from tests.invariants.life import Life, Observer
from tests.invariants.moments import Moments
from tests.invariants.opening import new_session, opened_session
from tests.invariants.scripts import READ, STUBBORN, WRITE, Said, answer, endless
from tests.invariants.virtual_loop import NeverDone

# Tools whose result says what they were called with.
ACTING = frozenset({READ, WRITE, STUBBORN})

# What a settled world may take at most, in steps of the loop.
PATIENCE = 30_000


class World(Observer):
    """Holds what must be true outside of the program, and compares."""

    def __init__(self, folder: Path, seed: int) -> None:
        """`seed` decides what the model will say, what comes first where it may be either, and whether hooks look."""
        self.folder = folder
        self._chance = random.Random(seed)
        self.endless = ""
        self.calm = False
        self.hooks_raise = False
        self.guard = "pass"
        self.broken: Broken | None = None
        self.runs: dict[str, list[Envelope]] = {}
        self.sent: dict[str, str] = {}
        self.returned: Counter[str] = Counter()
        self._thought: set[tuple[str, str]] = set()
        self._offered: Counter[tuple[str, str, str]] = Counter()
        self._effects: Counter[tuple[str, str, str]] = Counter()
        self._allowed: set[tuple[str, str, str]] = set()
        self._refused: set[tuple[str, tuple[str, ...]]] = set()
        self.moments = Moments()
        self._serial = 0
        self._order = seed % 64
        self.has_hooks = bool(seed & 64)
        self._repeating = 0.9 if seed & 128 else 0.1
        self._kept: set[str] = set()
        self._running: dict[object, tuple[str, str]] = {}
        self._stopped = False
        self._turn_is_open = False
        self._unanswered: set[str] = set()
        self._denied: set[str] = set()
        self.life = Life(folder, self)
        self.life.loop.order = self._order
        self.session: Session = new_session(self)
        self._listen()

    # What the person does.

    def in_loop(self, act: Any) -> Any:
        """Do it inside the loop, and let what it started begin."""

        async def work() -> Any:
            return act()

        return self._complete(work())

    def _complete(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self.life.loop.complete(work)
        except NeverDone as error:
            raise Broken(12, str(error)) from error

    def send(self, text: str) -> None:
        message = Message.user(text)
        self.sent[message.id] = text
        self._stopped = False
        try:
            self.in_loop(lambda: self.session.send(message))
        except WrongUse as error:
            raise Broken(14, f"a prompt is refused: {error}") from error

    def steer(self, text: str, when: Any) -> None:
        message = Message.user(text)
        self.sent[message.id] = text
        self.in_loop(lambda: self.session.steer(message, when))

    def decide(self, position: int, decision: Decision, *, and_stop: bool = False) -> None:
        """Decide on one of the waiting calls, and then once more otherwise; and stop everything in the same moment."""

        def act() -> None:
            broker = self.session.approvals
            if not broker.open_approvals:
                return
            approval = broker.open_approvals[position % len(broker.open_approvals)]
            if isinstance(decision, AllowOnce | AllowForConversation):
                arguments = decision.edited_input or approval.input
                self._allowed.add((approval.tool_use.id, approval.tool.name, arguments.get("word", "x")))
            elif isinstance(decision, Deny | DenyAndStop):
                self._refused.add((approval.tool_use.id, approval.agent_path))
            try:
                report = broker.answer(approval.approval_id, decision)
            except ToolInputInvalid:
                # What the person wrote does not fit the tool; the question must stand, and can be answered.
                require(approval in broker.open_approvals, 13, "an edit that does not fit decides")
                report = broker.answer(approval.approval_id, Deny())
            require(report.accepted, 13, "a first decision was not taken")
            again = broker.answer(approval.approval_id, AllowOnce())
            require(not again.accepted, 13, "a second decision was taken")
            if and_stop:
                self._stop()

        self.in_loop(act)

    def stop(self, target: Any = None) -> None:
        self.in_loop(lambda: self._stop(target))

    def _stop(self, target: Any = None) -> None:
        self.session.interrupt(*([target] if target is not None else []))
        self._stopped = target is None and self.session.working

    def has_arrived(self, moment: str) -> bool:
        """Whether it is this moment now."""
        match moment:
            case moments.ASKED:
                return bool(self.session.approvals.open_approvals)
            case moments.STARTING:
                return bool(self.moments.starting)
            case moments.ACTING:
                return bool(self._running)
            case moments.BELOW_WORKS:
                return self.moments.works_below()
            case _:
                return self.moments.speaks

    @property
    def running_calls(self) -> tuple[str, ...]:
        """The ids of the calls that act just now."""
        return tuple(id_ for _, id_ in self._running.values())

    def resume(self) -> None:
        """Go on with what the dead process left."""
        self.in_loop(self.session.resume)

    def leave(self) -> None:
        """An orderly end."""
        self._complete(self.session.close())
        self.life.end()

    def abandon(self) -> None:
        """After a failure: let go of what is open."""
        if self.life.alive:
            self.life.die()

    def set_mode(self, name: str) -> None:
        self.in_loop(lambda: self.session.modes.set_by_person(name))
        require(self.session.modes.current.name == name, 8, "the person's mode does not hold at once")

    def add_rule(self, effect: RuleEffect, tool: str) -> None:
        # Every other one names the tool only beside another, of which there is none.
        named = (tool,) if len(self.session.permission_policy.rules) % 2 else ("another", tool)
        self.in_loop(lambda: self.session.permission_policy.add(Rule(effect=effect, tool=named[0], also=named[1:])))
        if effect is RuleEffect.DENY:
            self._denied.add(tool)

    def take_back_rules(self) -> None:
        """All that deny or ask."""
        permission_policy = self.session.permission_policy
        stricter = [rule.id for rule in permission_policy.rules if rule.effect is not RuleEffect.ALLOW]
        self._denied.clear()
        self.in_loop(lambda: [permission_policy.revoke(id_) for id_ in stricter])

    # What befalls the program.

    def crash(self) -> None:
        """The process dies here and now, and the program is started again."""
        self._note_kept()
        self.life.die()
        self._forget_what_was_not_written()
        self._begin_life()
        # A message that was handed back to a dead process is where the disk has it.
        for id_ in {message.id for message in self.session.history} | {each.id for each in self.session.queue.entries}:
            self.returned.pop(id_, None)

    def reopen(self) -> None:
        """An orderly end and a new start."""
        there = self._where_the_messages_are()
        self._complete(self.session.close())
        self._check_at_rest(self.session)
        mode, denied = self.session.modes.current.name, set(self._denied)
        shown = list(self.session.transcript)
        history = self.session.history
        self.life.end()
        self._begin_life()
        # Nothing is kept of a conversation in which nothing was said.
        kept = mode if history else self.session.modes.current.name
        require(self.session.modes.current.name == kept, 8, f"the mode was “{mode}” before an orderly end")
        require(self._denied == denied, 4, f"an orderly end forgets what rules deny: {denied - self._denied}")
        lost = there - self._where_the_messages_are() - set(self.returned)
        require(not lost, 7, f"an orderly end loses {[self.sent[id_] for id_ in lost]}")
        require(self.session.history == history, 6, "another history after an orderly end")
        said = {message.id for message in history}
        shown = [item for item in shown if not isinstance(item, UserItem) or item.message_id in said]
        live_equals_replayed(shown, self.session.transcript)

    def _begin_life(self) -> None:
        self._running.clear()
        self.moments.begin_life()
        # What a dead process did not write was never decided.
        self._refused.clear()
        self._stopped = self._turn_is_open = False
        self.life = Life(self.folder, self)
        self.life.loop.order = self._order
        self.session = opened_session(self)
        denying = [rule for rule in self.session.permission_policy.rules if rule.effect is RuleEffect.DENY]
        self._denied &= {tool for rule in denying for tool in rule.tools}
        self._learn_which_runs_were_ended()
        self._listen()
        self._check_nothing_lost()

    def _listen(self) -> None:
        life = self.life

        def hear(envelope: Envelope) -> None:
            if life.alive:
                self._hear(envelope)
                self._guard(lambda: self.moments.hear(envelope, life.loop.count))

        self.session.subscribe(on_event=hear)

    def _forget_what_was_not_written(self) -> None:
        """What a dead process told its listeners and did not write never happened."""
        with closing(sqlite3.connect(self.folder / DATABASE_NAME)) as connection:
            rows = connection.execute(
                "SELECT runs.id, max(journal.number & 4294967295) FROM runs LEFT JOIN journal"
                " ON journal.number >> 32 = runs.number GROUP BY runs.id"
            ).fetchall()
        written = {run_id: last or 0 for run_id, last in rows}
        for run_id in list(self.runs):
            kept = [each for each in self.runs[run_id] if each.seq <= written.get(run_id, 0)]
            self.runs[run_id] = kept
            if not kept:
                del self.runs[run_id]

    def _learn_which_runs_were_ended(self) -> None:
        """Opening says in the journal that a dead process's runs are over, before anybody listens."""
        with closing(sqlite3.connect(self.folder / DATABASE_NAME)) as connection:
            rows = connection.execute(
                "SELECT runs.id, journal.number & 4294967295 FROM runs JOIN journal"
                " ON journal.number >> 32 = runs.number WHERE journal.type = 'run_finished'"
            ).fetchall()
        for run_id, seq in rows:
            heard = self.runs.get(run_id)
            if heard and heard[-1].seq < seq:
                heard.append(replace(heard[-1], seq=seq, event=RunFinished(RunEnd.ABORTED)))

    # What is observed.

    def next_answer(self, request: ModelRequest) -> tuple[int, Said]:
        """The model is asked."""
        self._guard(lambda: request_is_whole(request, self._thought, self.session.history))
        self._serial += 1
        if request.config.system_prompt == INSTRUCTIONS:
            return self._serial, Said((ContentDelta("What was said before."),))
        said = self._what_is_said()
        for event in said.steps(self._serial):
            if isinstance(event, ThinkingBlock):
                self._thought.add((event.text, repr(event.metadata)))
            elif getattr(event, "type", "") == "tool_use":
                self._offered[event.id, event.name, event.input.get("word", "x")] += 1
                self._refused = {each for each in self._refused if each[0] != event.id}
        return self._serial, said

    def _what_is_said(self) -> Said:
        if self.endless:
            return Said((ContentDelta("on"),)) if self.endless == "guards" else endless(self.endless, self._serial)
        return Said((ContentDelta("the end"),)) if self.calm else answer(self._chance, self._repeating)

    @contextmanager
    def effect(self, life: Life, name: str, word: str, call: RunningCall) -> Iterator[None]:
        """A tool has begun to act."""
        key = object()
        self.moments.starting.pop(call.tool_use_id, None)
        self._guard(lambda: self._check_start(life, name, word, call))
        self._running[key] = (name, call.tool_use_id)
        try:
            yield
        finally:
            self._running.pop(key, None)

    def _check_start(self, life: Life, name: str, word: str, call: RunningCall) -> None:
        id_ = call.tool_use_id
        triple = (id_, name, word)
        require(not self._stopped, 2, f"{name} started after Stop")
        # The person may have edited the arguments: then it is the call, not its words, that was offered.
        self._effects[id_, name, ""] += 1
        offered = sum(count for (use, tool, _), count in self._offered.items() if (use, tool) == (id_, name))
        require(self._effects[id_, name, ""] <= offered, 3, f"{name} {id_} ran more often than it was called")
        require(
            life.journalled("tool_started", id_) >= self._effects[id_, name, ""],
            3,
            f"{name} {id_} acts, and the journal does not know it",
        )
        require((id_, call.agent_path) not in self._refused, 13, f"{name} {id_} ran after the person had denied it")
        require(name not in self._denied and "*" not in self._denied, 4, f"{name} ran against a rule that denies it")
        if name in {READ, STUBBORN}:
            require(all(other in {READ, STUBBORN} for other, _ in self._running.values()), 5, "a read beside a change")
            return
        require(not self._running, 5, f"{name} started beside {list(self._running.values())}")
        mode = self.session.modes.current
        require(mode.mutating != "deny", 8, f"{name} ran in plan mode")
        by_rule = any(
            rule.effect is RuleEffect.ALLOW and name in rule.tools for rule in self.session.permission_policy.rules
        )
        allowed = triple in self._allowed or by_rule or mode.mutating == "accept_edits"
        require(allowed, 2, f"{name} {word!r} ran and nobody had allowed it")

    def _guard(self, check: Any) -> None:
        """A broken invariant must reach the test, whatever the program does with exceptions of its parts."""
        try:
            check()
        except Broken as broken:
            self.broken = self.broken or broken

    def _hear(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, UserMessageReturned):
            self.returned[event.message_id] += 1
        if not envelope.run_id:
            return
        self.runs.setdefault(envelope.run_id, []).append(envelope)
        if isinstance(event, ApprovalResolved):
            times = self._resolutions(event.approval_id)
            self._guard(lambda: require(times == 1, 13, "an approval was resolved twice"))
        if envelope.parent_run_id is None:
            self._follow(envelope)
        if isinstance(event, ToolFinished):
            self._running = {key: each for key, each in self._running.items() if each[1] != event.id}

    def _resolutions(self, approval_id: str) -> int:
        """How often it was resolved, as far as it was written where the process died."""
        events = (each.event for envelopes in self.runs.values() for each in envelopes)
        return sum(isinstance(event, ApprovalResolved) and event.approval_id == approval_id for event in events)

    def _follow(self, envelope: Envelope) -> None:
        """What the run of the root agent does."""
        match envelope.event:
            case RunStarted():
                self._stopped = False
            case TurnStarted():
                self._turn_is_open = True
                self._unanswered = set()
            case ToolUse():
                self._unanswered.add(envelope.event.id)
            case ToolFinished():
                # Calls that are not acted upon, of a refused answer for example, are answered without a round.
                self._unanswered.discard(envelope.event.id)
                self._turn_is_open = self._turn_is_open and bool(self._unanswered)
            case ToolResultsReceived():
                self._turn_is_open = False
            case RunFinished():
                self._turn_is_open = False
                # What did not heed Stop was left behind.
                self._running.clear()
            case Done():
                self._turn_is_open = bool(self._unanswered)
            case ModeChanged(authority="agent"):
                between = not self._turn_is_open
                self._guard(lambda: require(between, 8, "the agent's mode came in the middle of a turn"))
            case _:
                pass

    # What must be true.

    def check(self) -> None:
        """At any moment."""
        if self.broken is not None:
            raise self.broken
        self._note_kept()
        self._check_nothing_is_twice()

    def settle(self, decision: Decision) -> None:
        """Until nothing moves any more; whoever is asked decides like this."""
        self.calm = True
        for _ in range(PATIENCE):
            if self.session.approvals.open_approvals:
                self.decide(0, decision)
            moved = self.life.loop.step()
            if self.broken is not None:
                raise self.broken
            if not moved or (not self.session.working and not self._has_work()):
                break
        else:
            raise Broken(12, "the run never ends")
        self._complete(self.session.wait_idle())
        self.check()
        self._check_at_rest(self.session)
        self.check_delivery()
        self.calm, self.endless = False, ""

    def _has_work(self) -> bool:
        return bool(self.session.queue.entries)

    def _check_at_rest(self, session: Session) -> None:
        require(not session.working, 14, "nothing moves any more, and the session says that it works")
        require(not session.approvals.open_approvals, 12, "an approval waits for nobody")
        history = session.history
        # What a dead process left may stay open until somebody goes on with it.
        paused = self._unended() if session.can_resume else None
        results_follow_calls(history, may_be_open=session.can_resume)
        results_are_of_their_calls(history, ACTING)
        history_survives(history)
        runs_are_whole(self.runs, paused)
        text_is_what_was_streamed(self.runs, history)

    def _unended(self) -> str | None:
        roots = (each for each in self.runs.items() if each[1][0].parent_run_id is None)
        return next((id_ for id_, each in roots if not isinstance(each[-1].event, RunFinished)), None)

    def check_delivery(self) -> None:
        """7: each message is in the history once, or was handed back once."""
        there = Counter(message.id for message in self.session.history)
        waiting = Counter(entry.id for entry in self.session.queue.entries)
        for id_, text in self.sent.items():
            if id_ not in self._kept and not there[id_] and not self.returned[id_]:
                # It had not reached the disk when the program died.
                continue
            count = there[id_] + waiting[id_] + self.returned[id_]
            require(count == 1, 7, f"{text!r} is {count} times where it should be once")

    def _check_nothing_is_twice(self) -> None:
        """7, at any moment: a message that is just taken out may be nowhere, but none is at two places."""
        found = Counter(message.id for message in self.session.history if message.id in self.sent)
        found.update(entry.id for entry in self.session.queue.entries)
        found.update(id_ for id_, count in self.returned.items() if count)
        twice = [self.sent.get(id_, id_) for id_, count in found.items() if count > 1]
        require(not twice, 7, f"delivered, waiting or handed back twice: {twice}")

    def _note_kept(self) -> None:
        """Which messages the database holds, in the history or waiting."""
        unknown = [id_ for id_ in self.sent if id_ not in self._kept]
        if not unknown:
            return
        ids = {row[0] for row in self.life.watch.execute("SELECT id FROM messages")}
        states = [row[0] or "" for row in self.life.watch.execute("SELECT state FROM conversations")]
        for id_ in unknown:
            if id_ in ids or any(id_ in state for state in states):
                self._kept.add(id_)

    def _where_the_messages_are(self) -> set[str]:
        """Those of the person that are in the history, or wait."""
        ids = {message.id for message in self.session.history} | {entry.id for entry in self.session.queue.entries}
        return ids & set(self.sent)

    def _check_nothing_lost(self) -> None:
        there = self._where_the_messages_are()
        for id_ in self._kept:
            require(id_ in there or self.returned[id_], 7, f"{self.sent[id_]!r} was kept and is lost")

    def check_usable(self) -> None:
        """14: after all this, a question is answered."""
        self.endless, self.hooks_raise = "", False
        self.guard = "pass"
        self.calm = True
        self.send("Are you there?")
        self._complete(self.session.wait_idle())
        self.check()
        last = self.session.history[-1]
        require(last.text == "the end", 14, f"the last question was answered with {last!r}")
        self._check_at_rest(self.session)
