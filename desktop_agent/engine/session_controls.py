"""What the person may change while a run works (queue, modes, policies, guards), and the setup of sessions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from desktop_agent.agent.guards import Guards
from desktop_agent.agent.model_request import PictureReader
from desktop_agent.agent.modes import ModeSwitch
from desktop_agent.agent.prompt_policies import PromptPolicies
from desktop_agent.agent.questions import QuestionBroker
from desktop_agent.agent.steering_queue import SteeringQueue
from desktop_agent.conversation.answer_builder import AnswerBuilder, add_usage
from desktop_agent.conversation.history import SpecialistUsage
from desktop_agent.engine.permission_records import RuleBook
from desktop_agent.engine.session_permissions import SessionPolicyStore
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.engine.undo_forecast import is_irreversible
from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.permissions.policy import UntrustedContent
from desktop_agent.providers.provider import Provider
from desktop_agent.storage.records import ConversationRecord, ConversationState
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import conversation_closed_error
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.engine_events import (
    EngineEvent,
    Envelope,
    Event,
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
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import ProviderConfig

if TYPE_CHECKING:
    from desktop_agent.engine.spending import Spending


async def _no_wait_for_tools(_: ConversationRecord) -> None:
    """Wait for nobody."""


@dataclass(frozen=True)
class SessionSetup:
    """What sessions are made with.

    Functions are called afresh for each run, so changes hold from the next prompt on; `modes` are read at each use,
    so changes hold at once, see `ModeSwitch.refresh_modes`. `open_provider` also takes the name of a model: a
    specialist may have its own; `require_endpoint` raises WrongUse where it surely would. A run begins with
    `tools_ready`. `rules` hold while a session is open only; `rule_book` has the stored ones. `own_folders` are
    the program's own, where no call writes. `questions`: the agent may ask the person, so somebody must be there to
    answer. `mode_requests`: it may ask for another mode. `execute_tools` False: the caller executes the calls.
    `title_model` returns the model that makes titles, on the conversation's server; None leaves the first words.
    `spending` sums up what models use; with None nothing is counted.
    """

    open_provider: Callable[[ConversationRecord, str], Awaitable[Provider]]
    read_picture: PictureReader
    tools_for: Callable[[ConversationRecord], ToolRegistry]
    config_for: Callable[[ConversationRecord], ProviderConfig]
    require_endpoint: Callable[[ConversationRecord], None] = lambda _: None
    tools_ready: Callable[[ConversationRecord], Awaitable[None]] = _no_wait_for_tools
    limits: Callable[[], Limits] = Limits
    store: Store | None = None
    hooks: Hooks = field(default_factory=Hooks)
    modes: Callable[[], tuple[Mode, ...]] = lambda: BUILT_IN_MODES
    guards: tuple[Guard, ...] = ()
    specialists: Callable[[], tuple[Specialist, ...]] = tuple
    rules: tuple[Rule, ...] = ()
    rule_book: RuleBook = field(default_factory=RuleBook)
    own_folders: tuple[str, ...] = ()
    questions: bool = False
    mode_requests: bool = False
    execute_tools: bool = True
    title_model: Callable[[ConversationRecord], str | None] = lambda _: None
    spending: "Spending | None" = None

    def count_answer(self, record: ConversationRecord, provider: Provider, answer: AnswerBuilder) -> None:
        """Count what a model used for a conversation; without its project where it is in memory alone."""
        if self.spending is not None:
            project = "" if self.store is None else record.workspace or ""
            self.spending.count(record.endpoint_id, provider, answer, project)


_STOPPED_BEFORE_SENT = "Stopped before it was sent."
_MODE_REMOVED = "The mode “{title}” was removed, so “{now}” holds here. Choose another mode if you like."
_MODE_REMOVED_IN_PART = (
    "The mode “{title}” was removed. What it denied is still denied here, and you are asked about what it allowed. "
    "You can choose another mode at any time."
)
# A listener asks for a returned message at once; of those that nobody asks for, so many are remembered.
MAX_RETURNED = 500


class RuntimeControls:
    """Approvals, questions, rules, mode, policies, guards and queued messages of one conversation.

    `emit` puts an event into the run that works, or between two.
    """

    def __init__(self, writer: SessionWriter, setup: SessionSetup, emit: Callable[[EngineEvent], None]) -> None:
        state = writer.record.state
        self._writer = writer
        self._setup = setup
        self._state = state
        self._emit = emit
        self._in_flight: dict[str, QueuedMessage] = {}
        self._returned: dict[str, Message] = {}
        self.requeues_undecided = False
        """Whether a prompt whose run ends before it is sent is queued for the next opening: the conversation closes."""
        self._is_closed = False
        self._specialists = SpecialistUsage()
        # The journal has those from before a restart, but no listener in this process.
        self.approvals = ApprovalBroker(lambda approval: writer.emit_between_runs(approval.requested_event))
        self.questions = QuestionBroker()
        mode, removed = _restored_mode(state, setup.modes(), writer.show_notice)
        self._policy_store = SessionPolicyStore(
            writer,
            setup.rule_book,
            session_rules=setup.rules,
            mode=mode,
            own_folders=setup.own_folders,
            untrusted_content=UntrustedContent(state.outside, state.trusted),
            on_untrusted_change=self.save_state,
        )
        self.permission_policy = self._policy_store.policy
        refuse = self._refuse_when_closed
        self.modes = ModeSwitch(
            self.permission_policy,
            setup.modes,
            self._emit_and_save,
            removed,
            lambda removed, now: writer.show_notice(_mode_removed_notice(removed, now)),
            refuse,
        )
        self.policies = PromptPolicies(_unique_policies(state.policies), emit, self.save_state_soon, refuse)
        self.guards = Guards(setup.guards, refuse)
        self.queue = SteeringQueue(_undelivered(state.queue, writer.history()), self.save_state_soon, refuse)
        writer.internal_listeners.append(self._on_event)

    def is_irreversible(self, tool: str) -> bool:
        """Return whether calls of this tool may have changed something that nothing here can undo."""
        setup = self._setup
        return is_irreversible(tool, setup.tools_for(self._writer.record), has_checkpoints=setup.store is not None)

    def begin(self, prompt: Message, *, is_judged: bool) -> None:
        """Note that this prompt is about to be committed. `is_judged`: hooks judge it first, so it is stored now."""
        self._in_flight.setdefault(prompt.id, QueuedMessage(message=prompt))
        if is_judged:
            self.save_state()

    def check(self, message: Message) -> None:
        """Raise WrongUse for a message that is no prompt, is empty, waits already or was sent before."""
        # A queue of its own checks what may wait; a message to send must pass the same checks.
        SteeringQueue((*self.queue.entries, QueuedMessage(message=message)))
        if message.id in self._in_flight or message.id in self._writer.known_ids:
            raise WrongUse("This message was sent already.", "Send the same words as a new message.")

    def take_next(self, message: Message | None = None, when: When = "soon") -> Message | None:
        """Return the next message to send: this one, unless others wait; then it is queued behind them."""
        if not self.queue.entries:
            return message
        if message is not None:
            self.queue.add(message, when)
            self._emit(UserMessageQueued(message.id))
        # Noted before it is taken out: at every moment it is in one of the two, or in the history.
        self._in_flight[self.queue.entries[0].id] = self.queue.entries[0]
        return self.queue.take_next()

    def finish_prompt(self, prompt: Message | None) -> None:
        """End the run of this prompt: if it was not committed, it is returned to the person, or queued."""
        begun = self._in_flight.pop(prompt.id, None) if prompt is not None else None
        if begun is not None and begun.id not in self._writer.known_ids:
            if self.requeues_undecided:
                self._requeue(begun)
            else:
                self._return_messages((begun.message,))
        self.save_state()

    def return_queued(self) -> None:
        """Return all queued messages to the person."""
        self._return_messages([entry.message for entry in self.queue.take_all()])

    def returned(self, message_id: str) -> Message | None:
        """Return a returned message, once. Of messages that nobody asked for, the oldest are dropped."""
        return self._returned.pop(message_id, None)

    def note_stop(self, run_id: str) -> None:
        """Note that the person stopped this run: after a crash nothing of it is resumed."""
        self._state = self._state.model_copy(update={"stopped_run": run_id})
        self.save_state()

    def save_state_soon(self) -> None:
        """Save the state after the current step: a message is taken out and then committed."""
        asyncio.get_running_loop().call_soon(self.save_state)

    def add_title_usage(self, used: Usage) -> None:
        """Save what a model used for a title."""
        self._state = self._state.model_copy(update={"title_usage": add_usage(self._state.title_usage, used)})
        self.save_state()

    def save_state(self) -> None:
        """Save the state, if it has changed."""
        mode, removed = self.permission_policy.mode, self.modes.removed_mode
        self._state = self._state.model_copy(
            update={
                "mode": mode.name,
                "own_mode": removed or (None if mode in BUILT_IN_MODES else mode),
                "is_mode_gone": removed is not None,
                "policies": self.policies.persistent,
                "queue": self._unsent_messages(),
                "outside": self.permission_policy.untrusted_content.sources,
                "trusted": self.permission_policy.untrusted_content.trusted,
            }
        )
        if not self._is_closed and self._state != self._writer.record.state:
            self._writer.journal_queue.change_record(state=self._state)

    def close(self) -> None:
        """Save the state for the last time. Later changes raise WrongUse."""
        self.save_state()
        self._policy_store.close()
        self._is_closed = True

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise conversation_closed_error()

    def _requeue(self, entry: QueuedMessage) -> None:
        self.queue.add(entry.message, entry.when)
        self.queue.move(entry.id, 0)
        self._emit(UserMessageQueued(entry.id))

    def _return_messages(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._remember_returned(message)
            self._writer.emit_between_runs(UserMessageReturned(message.id, _STOPPED_BEFORE_SENT))

    def _on_event(self, envelope: Envelope) -> None:
        """Remember a prompt that a run returns, before listeners receive the event."""
        event = envelope.event
        if envelope.parent_run_id is not None:
            self._on_specialist_event(event, envelope.run_id)
        elif isinstance(event, UserMessageReturned):
            waiting = self._waiting_messages
            if event.message_id in waiting:
                self._remember_returned(waiting[event.message_id].message)
            self._in_flight.pop(event.message_id, None)

    def _on_specialist_event(self, event: Event, run_id: str) -> None:
        used = self._specialists.take(event, run_id)
        if used is not None:
            total = add_usage(self._state.specialist_usage, used)
            self._state = self._state.model_copy(update={"specialist_usage": total})
            self.save_state()

    def _remember_returned(self, message: Message) -> None:
        self._returned[message.id] = message
        if len(self._returned) > MAX_RETURNED:
            del self._returned[next(iter(self._returned))]

    @property
    def _waiting_messages(self) -> dict[str, QueuedMessage]:
        return {message.id: message for message in (*self._in_flight.values(), *self.queue.entries)}

    def _unsent_messages(self) -> tuple[QueuedMessage, ...]:
        known = self._writer.known_ids
        return tuple(message for message in self._waiting_messages.values() if message.id not in known)

    def _emit_and_save(self, event: EngineEvent) -> None:
        self._emit(event)
        if isinstance(event, ModeChanged):
            self.save_state()


def _restored_mode(
    state: ConversationState, modes: tuple[Mode, ...], show_notice: Callable[[Sentence], None]
) -> tuple[Mode | None, Mode | None]:
    """Return the mode that holds, None for the default; and the removed mode whose restrictions still hold."""
    own, current = state.own_mode, next((mode for mode in modes if mode.name == state.mode), None)
    if own is not None and (current is None or (state.is_mode_gone and current != own)):
        fallback = fallback_mode(own)
        show_notice(_mode_removed_notice(own, fallback))
        return fallback, own if fallback.name == own.name else None
    if current is not None or state.mode == DEFAULT_MODE.name:
        return current, None
    return _strictest_mode(state.mode, modes, show_notice), None


def _strictest_mode(removed: str, modes: tuple[Mode, ...], show_notice: Callable[[Sentence], None]) -> Mode:
    """Return the replacement for a mode of which only the name is known: nobody knows what it allowed."""
    plain = [mode for mode in (*modes, DEFAULT_MODE) if all(rule.effect != RuleEffect.ALLOW for rule in mode.rules)]
    strictest = min(plain, key=lambda mode: BREADTHS.index(mode.mutating))
    values = {"name": removed[:80], "title": strictest.title}
    show_notice(Sentence("There is no mode “{name}” any more, so “{title}” holds. Choose another mode.", values))
    return strictest


def _mode_removed_notice(removed: Mode, now: Mode) -> Sentence:
    return Sentence(
        _MODE_REMOVED_IN_PART if now.name == removed.name else _MODE_REMOVED, {"title": removed.title, "now": now.title}
    )


def _unique_policies(policies: Iterable[PromptPolicy]) -> tuple[PromptPolicy, ...]:
    return tuple({policy.id: policy for policy in policies}.values())


def _undelivered(queue: Iterable[QueuedMessage], history: Iterable[Message]) -> tuple[QueuedMessage, ...]:
    """Drop queued messages that were delivered just before the end, and what is no prompt."""
    known = {message.id for message in history}
    waiting = {entry.id: entry for entry in queue if entry.id not in known}.values()
    return tuple(entry for entry in waiting if entry.message.role is Role.USER and not entry.message.is_blank)
