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
from tests.invariants.scripts import READ, STUBBORN, WRITE, ScriptedAnswer, answer, endless
from tests.invariants.virtual_loop import NeverDone

# Tools whose result says what they were called with.
ACTING = frozenset({READ, WRITE, STUBBORN})

# What a settled world may take at most, in steps of the loop.
PATIENCE = 30_000


class World(Observer):
    """Keeps a record outside of the program of what must be true, and compares."""

    def __init__(self, folder: Path, seed: int) -> None:
        """`seed` decides what the model says, the order of tasks in sets, and whether there are hooks."""
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
        self._stored: set[str] = set()
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
        """Call `act` inside the loop, and let what it started begin."""

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
        """Decide on one of the waiting calls, try a second decision, and, with `and_stop`, stop in the same moment."""

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
            second = broker.answer(approval.approval_id, AllowOnce())
            require(not second.accepted, 13, "a second decision was taken")
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
        """The ids of the calls whose tools are at work."""
        return tuple(id_ for _, id_ in self._running.values())

    def resume(self) -> None:
        """Resume what the dead process left."""
        self.in_loop(self.session.resume)

    def leave(self) -> None:
        """Close the session and end the life in order."""
        self._complete(self.session.close())
        self.life.end()

    def abandon(self) -> None:
        """Release what is open after a failure."""
        if self.life.alive:
            self.life.die()

    def set_mode(self, name: str) -> None:
        self.in_loop(lambda: self.session.modes.set_by_person(name))
        require(self.session.modes.current.name == name, 8, "the person's mode does not hold at once")

    def add_rule(self, effect: RuleEffect, tool: str) -> None:
        # Every other rule names the tool beside another one, which does not exist.
        named = (tool,) if len(self.session.permission_policy.rules) % 2 else ("another", tool)
        self.in_loop(lambda: self.session.permission_policy.add(Rule(effect=effect, tool=named[0], also=named[1:])))
        if effect is RuleEffect.DENY:
            self._denied.add(tool)

    def revoke_rules(self) -> None:
        """Revoke all rules that deny or ask."""
        permission_policy = self.session.permission_policy
        stricter = [rule.id for rule in permission_policy.rules if rule.effect is not RuleEffect.ALLOW]
        self._denied.clear()
        self.in_loop(lambda: [permission_policy.revoke(id_) for id_ in stricter])

    # What befalls the program.

    def crash(self) -> None:
        """Let the process die here and now, and start the program again."""
        self._note_stored()
        self.life.die()
        self._forget_unwritten_events()
        self._begin_life()
        # A message that was handed back to a dead process is where the disk has it.
        for id_ in {message.id for message in self.session.history} | {
            entry.id for entry in self.session.queue.entries
        }:
            self.returned.pop(id_, None)

    def reopen(self) -> None:
        """Close the program in order, and start it again."""
        before = self._present_messages()
        self._complete(self.session.close())
        self._check_at_rest(self.session)
        mode, denied = self.session.modes.current.name, set(self._denied)
        shown = list(self.session.transcript)
        history = self.session.history
        self.life.end()
        self._begin_life()
        # Nothing is kept of a conversation in which nothing was said.
        expected = mode if history else self.session.modes.current.name
        require(self.session.modes.current.name == expected, 8, f"the mode was “{mode}” before an orderly end")
        require(self._denied == denied, 4, f"an orderly end forgets what rules deny: {denied - self._denied}")
        lost = before - self._present_messages() - set(self.returned)
        require(not lost, 7, f"an orderly end loses {[self.sent[id_] for id_ in lost]}")
        require(self.session.history == history, 6, "another history after an orderly end")
        message_ids = {message.id for message in history}
        shown = [item for item in shown if not isinstance(item, UserItem) or item.message_id in message_ids]
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
        self._add_ends_of_dead_runs()
        self._listen()
        self._check_nothing_lost()

    def _listen(self) -> None:
        life = self.life

        def on_event(envelope: Envelope) -> None:
            if life.alive:
                self._record(envelope)
                self._guard(lambda: self.moments.observe(envelope, life.loop.count))

        self.session.subscribe(on_event=on_event)

    def _forget_unwritten_events(self) -> None:
        """Forget the events that a dead process sent to listeners and did not write."""
        with closing(sqlite3.connect(self.folder / DATABASE_NAME)) as connection:
            rows = connection.execute(
                "SELECT runs.id, max(journal.number & 4294967295) FROM runs LEFT JOIN journal"
                " ON journal.number >> 32 = runs.number GROUP BY runs.id"
            ).fetchall()
        written = {run_id: last or 0 for run_id, last in rows}
        for run_id in list(self.runs):
            written_envelopes = [envelope for envelope in self.runs[run_id] if envelope.seq <= written.get(run_id, 0)]
            self.runs[run_id] = written_envelopes
            if not written_envelopes:
                del self.runs[run_id]

    def _add_ends_of_dead_runs(self) -> None:
        """Add the ends that opening writes for the runs of a dead process, before anybody listens."""
        with closing(sqlite3.connect(self.folder / DATABASE_NAME)) as connection:
            rows = connection.execute(
                "SELECT runs.id, journal.number & 4294967295 FROM runs JOIN journal"
                " ON journal.number >> 32 = runs.number WHERE journal.type = 'run_finished'"
            ).fetchall()
        for run_id, seq in rows:
            envelopes = self.runs.get(run_id)
            if envelopes and envelopes[-1].seq < seq:
                envelopes.append(replace(envelopes[-1], seq=seq, event=RunFinished(RunEnd.ABORTED)))

    # What is observed.

    def next_answer(self, request: ModelRequest) -> tuple[int, ScriptedAnswer]:
        """Check a request to the model, and return its number and the answer."""
        self._guard(lambda: request_is_whole(request, self._thought, self.session.history))
        self._serial += 1
        if request.config.system_prompt == INSTRUCTIONS:
            return self._serial, ScriptedAnswer((ContentDelta("What was said before."),))
        scripted = self._scripted_answer()
        for event in scripted.steps(self._serial):
            if isinstance(event, ThinkingBlock):
                self._thought.add((event.text, repr(event.metadata)))
            elif getattr(event, "type", "") == "tool_use":
                self._offered[event.id, event.name, event.input.get("word", "x")] += 1
                self._refused = {refusal for refusal in self._refused if refusal[0] != event.id}
        return self._serial, scripted

    def _scripted_answer(self) -> ScriptedAnswer:
        if self.endless:
            return (
                ScriptedAnswer((ContentDelta("on"),))
                if self.endless == "guards"
                else endless(self.endless, self._serial)
            )
        return ScriptedAnswer((ContentDelta("the end"),)) if self.calm else answer(self._chance, self._repeating)

    @contextmanager
    def effect(self, life: Life, name: str, word: str, call: RunningCall) -> Iterator[None]:
        """Check that the tool may begin; it acts inside the block."""
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
        """Run a check; a broken invariant reaches the test, whatever the program does with exceptions."""
        try:
            check()
        except Broken as broken:
            self.broken = self.broken or broken

    def _record(self, envelope: Envelope) -> None:
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
            self._running = {key: entry for key, entry in self._running.items() if entry[1] != event.id}

    def _resolutions(self, approval_id: str) -> int:
        """Return how often an approval was resolved; what a dead process did not write does not count."""
        events = (envelope.event for envelopes in self.runs.values() for envelope in envelopes)
        return sum(isinstance(event, ApprovalResolved) and event.approval_id == approval_id for event in events)

    def _follow(self, envelope: Envelope) -> None:
        """Follow the run of the root agent."""
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
        """Check what must hold at any moment."""
        if self.broken is not None:
            raise self.broken
        self._note_stored()
        self._check_nothing_is_twice()

    def settle(self, decision: Decision) -> None:
        """Run until nothing happens any more, with this decision for every approval. Check what must hold at rest."""
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
        roots = (run for run in self.runs.items() if run[1][0].parent_run_id is None)
        return next((id_ for id_, envelopes in roots if not isinstance(envelopes[-1].event, RunFinished)), None)

    def check_delivery(self) -> None:
        """7: each message is in the history once, waits once, or was handed back once."""
        delivered = Counter(message.id for message in self.session.history)
        waiting = Counter(entry.id for entry in self.session.queue.entries)
        for id_, text in self.sent.items():
            if id_ not in self._stored and not delivered[id_] and not self.returned[id_]:
                # It had not reached the disk when the program died.
                continue
            count = delivered[id_] + waiting[id_] + self.returned[id_]
            require(count == 1, 7, f"{text!r} is {count} times where it should be once")

    def _check_nothing_is_twice(self) -> None:
        """7, at any moment: a message that is just taken out may be nowhere, but none is in two places."""
        places = Counter(message.id for message in self.session.history if message.id in self.sent)
        places.update(entry.id for entry in self.session.queue.entries)
        places.update(id_ for id_, count in self.returned.items() if count)
        twice = [self.sent.get(id_, id_) for id_, count in places.items() if count > 1]
        require(not twice, 7, f"delivered, waiting or handed back twice: {twice}")

    def _note_stored(self) -> None:
        """Note which messages the database holds, in the history or waiting."""
        unknown = [id_ for id_ in self.sent if id_ not in self._stored]
        if not unknown:
            return
        ids = {row[0] for row in self.life.watch.execute("SELECT id FROM messages")}
        states = [row[0] or "" for row in self.life.watch.execute("SELECT state FROM conversations")]
        for id_ in unknown:
            if id_ in ids or any(id_ in state for state in states):
                self._stored.add(id_)

    def _present_messages(self) -> set[str]:
        """Return the ids of the person's messages that are in the history, or wait."""
        ids = {message.id for message in self.session.history} | {entry.id for entry in self.session.queue.entries}
        return ids & set(self.sent)

    def _check_nothing_lost(self) -> None:
        present = self._present_messages()
        for id_ in self._stored:
            require(id_ in present or self.returned[id_], 7, f"{self.sent[id_]!r} was kept and is lost")

    def check_usable(self) -> None:
        """14: after all this, a prompt is answered."""
        self.endless, self.hooks_raise = "", False
        self.guard = "pass"
        self.calm = True
        self.send("Are you there?")
        self._complete(self.session.wait_idle())
        self.check()
        last = self.session.history[-1]
        require(last.text == "the end", 14, f"the last question was answered with {last!r}")
        self._check_at_rest(self.session)
