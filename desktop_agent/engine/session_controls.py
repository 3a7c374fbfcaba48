"""What the person may change while a run works: queue, modes, policies, guards; and what sessions are set up with."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, cast

from desktop_agent.agent.continuation import Guards, SteeringQueue
from desktop_agent.agent.model_request import PictureReader
from desktop_agent.agent.modes import ModeSwitch, PromptPolicies
from desktop_agent.agent.questions import QuestionBroker
from desktop_agent.engine.permission_records import RuleBook
from desktop_agent.engine.session_permissions import SessionApprovalBroker, SessionPermissionPolicy
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.permissions.policy import ALL_NAMES, ToolNamePolicy, UntrustedContent
from desktop_agent.providers.provider import Provider
from desktop_agent.storage.records import ConversationRecord, ConversationState
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import conversation_closed_error
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.engine_events import (
    EngineEvent,
    Envelope,
    ModeChanged,
    UserMessageQueued,
    UserMessageReturned,
)
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import (
    BREADTHS,
    BUILT_IN_MODES,
    DEFAULT_MODE,
    Mode,
    Rule,
    RuleEffect,
    fallback_mode,
)
from desktop_agent.types.policies import Guard, Hooks, Limits, PromptPolicy, QueuedMessage, Specialist, When
from desktop_agent.types.providers import ProviderConfig


async def _no_wait_for_tools(_: ConversationRecord) -> None:
    """Wait for nobody."""


@dataclass(frozen=True)
class SessionSetup:
    """What sessions are made with. Functions are called afresh for each run, so changes hold from the next prompt on;
    `modes` are asked for whenever one is looked for, so changes hold at once, see `ModeSwitch.follow`.

    `open_provider` also takes the name of a model: a specialist may have its own; `require_endpoint` raises WrongUse
    where it is certain to. A run begins with `tools_ready`. `rules` hold while a session is
    open and are kept nowhere; `book` has those that are kept. `names` says which tools may be named at all.
    `own_folders` are the program's own, where no call writes. `files`
    saves what calls change; None saves nothing. `questions`: the agent may ask the person something, so somebody must
    be there to answer. `mode_requests`: it may ask for another mode. `execute_tools` False: the caller runs the calls.
    """

    open_provider: Callable[[ConversationRecord, str], Awaitable[Provider]]
    read_picture: PictureReader
    tools_for: Callable[[ConversationRecord], ToolRegistry]
    config_for: Callable[[ConversationRecord], ProviderConfig]
    require_endpoint: Callable[[ConversationRecord], None] = lambda _: None
    tools_ready: Callable[[ConversationRecord], Awaitable[None]] = _no_wait_for_tools
    limits: Callable[[], Limits] = Limits
    file_keeper_for: Callable[[ConversationRecord], Checkpointer | None] | None = None
    store: Store | None = None
    hooks: Hooks = field(default_factory=Hooks)
    modes: Callable[[], tuple[Mode, ...]] = lambda: BUILT_IN_MODES
    guards: tuple[Guard, ...] = ()
    specialists: Callable[[], tuple[Specialist, ...]] = tuple
    rules: tuple[Rule, ...] = ()
    rule_book: RuleBook = field(default_factory=RuleBook)
    names: ToolNamePolicy = ALL_NAMES
    own_folders: tuple[str, ...] = ()
    questions: bool = False
    mode_requests: bool = False
    execute_tools: bool = True
    compact_at: float | None = 0.8


_STOPPED_BEFORE_SENT = "Stopped before it was sent."
_MODE_REMOVED = "The mode “{title}” was removed, so “{now}” holds here. Choose another mode if you like."
_MODE_REMOVED_IN_PART = (
    "The mode “{title}” was removed. What it denied or asked about stays so here, what it allowed is asked about; "
    "choose another mode when you like."
)
# Whoever hears that a message was handed back asks for it then; of those that nobody asks for, so many are remembered.
MAX_RETURNED = 500
ChangeMethod = TypeVar("ChangeMethod", bound=Callable[..., Any])


class _Closable:
    """What may be changed until its conversation is closed: another session may have that by then."""

    is_closed = False


def _refused_when_closed(change: ChangeMethod) -> ChangeMethod:
    """The same; raises WrongUse, before anything is changed, when the conversation is closed."""

    @wraps(change)
    def changed(of: _Closable, *given: object, **named: object) -> object:
        if of.is_closed:
            raise conversation_closed_error()
        return change(of, *given, **named)

    return cast("ChangeMethod", changed)


class _Modes(_Closable, ModeSwitch):
    set_by_person = _refused_when_closed(ModeSwitch.set_by_person)
    request_by_agent = _refused_when_closed(ModeSwitch.request_by_agent)
    cancel_request = _refused_when_closed(ModeSwitch.cancel_request)

    def __init__(
        self,
        permission_policy: SessionPermissionPolicy,
        offered: Callable[[], Iterable[Mode]],
        emit: Callable[[EngineEvent], None],
        say: Callable[[Sentence], None],
        gone: Mode | None,
    ) -> None:
        super().__init__(permission_policy, offered, emit, gone)
        self._show_notice = say

    def refresh_modes(self) -> Mode | None:
        """As in ModeSwitch; the person is told of one that is gone. Closed, it follows nothing."""
        gone = None if self.is_closed else super().refresh_modes()
        if gone is not None:
            self._show_notice(_mode_removed_notice(gone, self.current))
        return gone


class _Policies(_Closable, PromptPolicies):
    install = _refused_when_closed(PromptPolicies.install)
    remove = _refused_when_closed(PromptPolicies.remove)


class _Guards(_Closable, Guards):
    add = _refused_when_closed(Guards.add)
    remove = _refused_when_closed(Guards.remove)


class _Queue(_Closable, SteeringQueue):
    add = _refused_when_closed(SteeringQueue.add)
    edit = _refused_when_closed(SteeringQueue.edit)
    move = _refused_when_closed(SteeringQueue.move)
    remove = _refused_when_closed(SteeringQueue.remove)
    take_next = _refused_when_closed(SteeringQueue.take_next)
    take_all = _refused_when_closed(SteeringQueue.take_all)


class RuntimeControls:
    """Approvals, questions, rules, mode, policies, guards and waiting messages of one conversation.

    `emit` puts an event into the run that works, or between two.
    """

    def __init__(self, writer: SessionWriter, setup: SessionSetup, emit: Callable[[EngineEvent], None]) -> None:
        state = writer.record.state
        self._writer = writer
        self._state = state
        self._emit = emit
        self._in_flight: dict[str, QueuedMessage] = {}
        self._returned: dict[str, Message] = {}
        self._requeues_undecided = False
        self._is_closed = False
        self.approvals = SessionApprovalBroker(writer.emit_between_runs)
        self.questions = QuestionBroker()
        held, gone = _restored_mode(state, setup.modes(), writer.show_notice)
        self.permission_policy = SessionPermissionPolicy(
            writer.journal_queue,
            setup.rule_book,
            given=setup.rules,
            mode=held,
            names=setup.names,
            own_folders=setup.own_folders,
            untrusted_content=UntrustedContent(state.outside, state.trusted),
            on_untrusted_change=self.save_state,
        )
        self.modes = _Modes(self.permission_policy, setup.modes, self._emit_and_save, writer.show_notice, gone)
        self.policies = _Policies(_unique_policies(state.policies), emit, self.save_state_soon)
        self.guards = _Guards(setup.guards, emit)
        self.queue = _Queue(_undelivered(state.queue, writer.history()), self.save_state_soon)
        writer.internal_listeners.append(self._on_event)

    def begin(self, prompt: Message, *, is_judged: bool) -> None:
        """This prompt is on its way into the history. `is_judged`: hooks look at it first, so it is kept meanwhile."""
        self._in_flight.setdefault(prompt.id, QueuedMessage(message=prompt))
        if is_judged:
            self.save_state()

    def check(self, message: Message) -> None:
        """Raises WrongUse for a message that is no prompt, says nothing, waits already or was sent before."""
        # A queue of its own says what may wait; what is sent may be no less.
        SteeringQueue((*self.queue.entries, QueuedMessage(message=message)))
        if message.id in self._in_flight or message.id in self._writer.known_ids:
            raise WrongUse("This message was sent already.", "Send the same words as a new message.")

    def take_next(self, message: Message | None = None, when: When = "soon") -> Message | None:
        """The next message that waits, on its way now: this one, unless others wait; then it waits behind them."""
        if not self.queue.entries:
            return message
        if message is not None:
            self.queue.add(message, when)
            self._emit(UserMessageQueued(message.id))
        # Noted before it is taken out: at every moment it is in one of the two, or in the history.
        self._in_flight[self.queue.entries[0].id] = self.queue.entries[0]
        return self.queue.take_next()

    def finish_prompt(self, prompt: Message | None) -> None:
        """The run of this prompt is over: if it never reached the history, it goes back to who wrote it, or waits."""
        begun = self._in_flight.pop(prompt.id, None) if prompt is not None else None
        if begun is not None and begun.id not in self._writer.known_ids:
            if self._requeues_undecided:
                self._requeue(begun)
            else:
                self._return_messages((begun.message,))
        self.save_state()

    def requeue_undecided(self) -> None:
        """The conversation is being closed: a prompt whose run ends before it is sent waits for the next opening."""
        self._requeues_undecided = True

    def return_queued(self) -> None:
        """All that wait go back to who wrote them."""
        self._return_messages([entry.message for entry in self.queue.take_all()])

    def returned(self, message_id: str) -> Message | None:
        """A message that was handed back, whole. Once; of messages that nobody asked for, the oldest are forgotten."""
        return self._returned.pop(message_id, None)

    def note_stop(self, run_id: str) -> None:
        """The person stopped this run: should the program die now, nothing of it is gone on with."""
        self._state = self._state.model_copy(update={"stopped_run": run_id})
        self.save_state()

    def save_state_soon(self) -> None:
        """Keep how things stand, after whatever is being done just now: a message is taken out and then committed."""
        asyncio.get_running_loop().call_soon(self.save_state)

    def save_state(self) -> None:
        """Keep how things stand, if it is not as kept."""
        held, gone = self.permission_policy.mode, self.modes.removed_mode
        self._state = self._state.model_copy(
            update={
                "mode": held.name,
                "own_mode": gone or (None if held in BUILT_IN_MODES else held),
                "is_mode_gone": gone is not None,
                "policies": self.policies.persistent,
                "queue": self._unsent_messages(),
                "outside": self.permission_policy.untrusted_content.sources,
                "trusted": self.permission_policy.untrusted_content.trusted,
            }
        )
        if not self._is_closed and self._state != self._writer.record.state:
            self._writer.journal_queue.change_record(state=self._state)

    def close(self) -> None:
        """Keep how things stand for good. Who changes anything of it after this gets WrongUse."""
        self.save_state()
        self.permission_policy.close()
        for each in (self.modes, self.policies, self.guards, self.queue):
            each.is_closed = True
        self._is_closed = True

    def _requeue(self, entry: QueuedMessage) -> None:
        self.queue.add(entry.message, entry.when)
        self.queue.move(entry.id, 0)
        self._emit(UserMessageQueued(entry.id))

    def _return_messages(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._remember_returned(message)
            self._writer.emit_between_runs(UserMessageReturned(message.id, _STOPPED_BEFORE_SENT))

    def _on_event(self, envelope: Envelope) -> None:
        """What a run hands back by itself is remembered before anybody else hears of it."""
        event = envelope.event
        if isinstance(event, UserMessageReturned):
            waiting = {each.id: each for each in (*self._in_flight.values(), *self.queue.entries)}
            if event.message_id in waiting:
                self._remember_returned(waiting[event.message_id].message)
            self._in_flight.pop(event.message_id, None)

    def _remember_returned(self, message: Message) -> None:
        self._returned[message.id] = message
        if len(self._returned) > MAX_RETURNED:
            del self._returned[next(iter(self._returned))]

    def _unsent_messages(self) -> tuple[QueuedMessage, ...]:
        known = self._writer.known_ids
        waiting = {each.id: each for each in (*self._in_flight.values(), *self.queue.entries)}
        return tuple(each for each in waiting.values() if each.id not in known)

    def _emit_and_save(self, event: EngineEvent) -> None:
        self._emit(event)
        if isinstance(event, ModeChanged):
            self.save_state()


def _restored_mode(
    state: ConversationState, modes: tuple[Mode, ...], say: Callable[[Sentence], None]
) -> tuple[Mode | None, Mode | None]:
    """What holds, None for the default, and the removed mode of which it is what goes on."""
    own, found = state.own_mode, next((mode for mode in modes if mode.name == state.mode), None)
    if own is not None and (found is None or (state.is_mode_gone and found != own)):
        held = fallback_mode(own)
        say(_mode_removed_notice(own, held))
        return held, own if held.name == own.name else None
    if found is not None or state.mode == DEFAULT_MODE.name:
        return found, None
    return _strictest_mode(state.mode, modes, say), None


def _strictest_mode(gone: str, modes: tuple[Mode, ...], say: Callable[[Sentence], None]) -> Mode:
    """In place of a mode of which only the name is known: what it allowed nobody knows."""
    plain = [mode for mode in (*modes, DEFAULT_MODE) if all(rule.effect != RuleEffect.ALLOW for rule in mode.rules)]
    strictest = min(plain, key=lambda mode: BREADTHS.index(mode.mutating))
    values = {"name": gone[:80], "title": strictest.title}
    say(Sentence("There is no mode “{name}” any more, so “{title}” holds. Choose another mode.", values))
    return strictest


def _mode_removed_notice(gone: Mode, now: Mode) -> Sentence:
    return Sentence(
        _MODE_REMOVED_IN_PART if now.name == gone.name else _MODE_REMOVED, {"title": gone.title, "now": now.title}
    )


def _unique_policies(policies: Iterable[PromptPolicy]) -> tuple[PromptPolicy, ...]:
    return tuple({policy.id: policy for policy in policies}.values())


def _undelivered(queue: Iterable[QueuedMessage], history: Iterable[Message]) -> tuple[QueuedMessage, ...]:
    """Those that reached the history just before the end are delivered; what is no prompt cannot be."""
    known = {message.id for message in history}
    waiting = {each.id: each for each in queue if each.id not in known}
    return tuple(each for each in waiting.values() if each.message.role is Role.USER and each.message.blocks)
