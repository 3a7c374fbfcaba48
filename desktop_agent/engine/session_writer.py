"""The single writer of one conversation: events are shown, kept in memory, and written, in that order."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from desktop_agent.conversation.branches import Branches, Versions
from desktop_agent.conversation.history import is_own_prompt
from desktop_agent.conversation.items import Change, NoticeItem, UserItem
from desktop_agent.conversation.message_tree import Deletion
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import last_message_but_undo_notes
from desktop_agent.processes.foreign_code import deep_copy, notify
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.records import BranchPart, ConversationChanges, ConversationRecord, MessagePlace
from desktop_agent.types.blocks import Block, Summary
from desktop_agent.types.conversation_tree import BranchPoints, TreeMessage
from desktop_agent.types.engine_events import EngineEvent, Envelope, Event, RunEnd, RunFinished
from desktop_agent.types.errors import DatabaseReplaced, RemedyAction, Sentence, StorageFailed, WrittenElsewhere
from desktop_agent.types.messages import Message, MessageState, Role, new_id, now
from desktop_agent.types.pieces import PIECES, single_envelopes
from desktop_agent.types.provider_events import Usage, UsageUpdate

SAVED_NOW = Sentence("The disk refused this for a while; it is saved now.")
MESSAGE_WAITS = Sentence("A message waits to be sent.")
NOT_ANSWERED_YET = Sentence("There is no answer to this yet.")
CAN_CONTINUE = Sentence("The model can go on from here.")

_NORMAL_ENDS = frozenset({RunEnd.COMPLETED, RunEnd.AWAITING_RESULTS})

ChangeListener = Callable[[Sequence[Change]], None]
EventListener = Callable[[Envelope], None]
# Gets the envelope of a text, and the pieces that it was joined from.
PieceListener = Callable[[Envelope, Sequence[Event]], None]


class SessionWriter:
    """Keeps messages, transcript and journal of one conversation in step.

    The history may be the end of the branch alone: `above` is the stored message before it. `known_ids` are those of
    all messages that were ever in the history while it was open. `nodes` are the messages of all branches where nothing
    is stored. `is_followed`: another process writes, so a prompt without an answer is being answered; where nothing is
    stored, it `is_only_read`. `rule_queue` stores standing rules where the conversation itself is in memory alone.
    """

    def __init__(
        self,
        journal_queue: JournalQueue,
        messages: Sequence[Message] = (),
        branch_points: BranchPoints | None = None,
        above: MessagePlace | None = None,
        *,
        nodes: Sequence[TreeMessage] = (),
        is_followed: bool = False,
        rule_queue: JournalQueue | None = None,
    ) -> None:
        self.journal_queue = journal_queue
        self.rule_queue = rule_queue or journal_queue
        self._messages = list(messages)
        self.above = above
        above_id = None if above is None else above.id
        self.branches = Branches(branch_points or {}, stored=journal_queue.is_stored, above=above_id, nodes=nodes)
        self.known_ids = {message.id for message in messages}
        self.transcript = Transcript(self._messages)
        self.usage = _last_usage(self._messages)
        self._change_listeners: tuple[ChangeListener, ...] = ()
        # Parts of our own: they are called before the listeners, and get real events, not copies, but no pieces.
        self.internal_listeners: list[EventListener] = []
        self._event_listeners: tuple[EventListener, ...] = ()
        self._single_piece_listeners: tuple[EventListener, ...] = ()
        self._piece_listeners: tuple[PieceListener, ...] = ()
        self._trouble_notice: NoticeItem | None = None
        self._is_followed = is_followed
        self.is_only_read = is_followed and not journal_queue.is_stored
        self._offer_continue()
        journal_queue.on_trouble(self._on_write_error)
        if rule_queue is not None:
            rule_queue.on_trouble(self._on_write_error)

    @property
    def record(self) -> ConversationRecord:
        return self.journal_queue.record

    @property
    def head(self) -> str | None:
        return self._messages[-1].id if self._messages else self.branches.above

    def history(self) -> tuple[Message, ...]:
        """Return the messages of the branch from `above` on, oldest first."""
        return tuple(self._messages)

    def prepend(self, part: BranchPart) -> None:
        """Add the stored messages that come before the history."""
        self.above = part.above
        # Who follows what another process writes cannot go to another branch.
        points: BranchPoints = {} if self._is_followed else part.branch_points
        self.branches.prepend(points, None if part.above is None else part.above.id)
        self._messages[:0] = part.messages
        self.known_ids.update(message.id for message in part.messages)
        self.usage = self.usage or _last_usage(self._messages)
        self.notify_changes(self.transcript.prepend(part.messages))

    @property
    def versions(self) -> Mapping[str, Versions]:
        """Return the versions of what is in view, by the id of the first message of each that people see."""
        return self.branches.versions(self._messages)

    @property
    def continuations(self) -> tuple[str, ...]:
        """Return the ids of the messages with which other branches go on below what is in view, oldest first."""
        return self.branches.continuations(self._messages)

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Change the record, and remove errors that said that no model, or the wrong one, was chosen."""
        self.journal_queue.change_record(**changes)
        if "model" in changes:
            self.notify_changes(self.transcript.end_remedied(RemedyAction.CHOOSE_MODEL))

    def subscribe(
        self,
        on_changes: ChangeListener | None,
        on_event: EventListener | None,
        on_pieces: PieceListener | None = None,
        *,
        pieces: bool = True,
    ) -> None:
        """Call these listeners from now on, `on_event` only with `pieces` also for each piece of a text."""
        if on_changes is not None:
            self._change_listeners += (on_changes,)
        if on_event is not None:
            self._event_listeners += (on_event,)
            if pieces:
                self._single_piece_listeners += (on_event,)
        if on_pieces is not None:
            self._piece_listeners += (on_pieces,)

    def unsubscribe(self, listener: ChangeListener | EventListener | PieceListener) -> None:
        """Stop calling this listener."""
        self._change_listeners = tuple(other for other in self._change_listeners if other != listener)
        self._event_listeners = tuple(other for other in self._event_listeners if other != listener)
        self._single_piece_listeners = tuple(other for other in self._single_piece_listeners if other != listener)
        self._piece_listeners = tuple(other for other in self._piece_listeners if other != listener)

    def show(self, message: Message) -> None:
        """Show a message that is about to be committed."""
        self.notify_changes(self.transcript.add_message(message))

    def show_notice(self, sentence: Sentence, action: RemedyAction = RemedyAction.NONE) -> None:
        """Show a notice."""
        self.notify_changes(self.transcript.add_notice(sentence, action=action))

    def show_waiting(self, queue: Collection[object]) -> None:
        """Show that messages wait to be sent, if any do."""
        if queue:
            self.show_notice(MESSAGE_WAITS, RemedyAction.RETRY)

    def write_event(self, envelope: Envelope, pieces: Sequence[Event] = ()) -> None:
        """Show an event, notify listeners, and journal it soon, unless it is transient (has no number).

        Listeners get the `pieces` that are joined in it one by one.
        """
        self.show_event(envelope)
        if isinstance(envelope.event, RunFinished) and envelope.parent_run_id is None:
            self._on_run_end(envelope.event.reason)
        if envelope.seq:
            self.journal_queue.add_event(envelope)
        self._notify_event(envelope, pieces)

    def emit_between_runs(self, event: EngineEvent) -> None:
        """Show an event between runs and notify listeners; it is never journalled."""
        envelope = Envelope(0, "", None, None, now(), event)
        self.show_event(envelope)
        self._notify_event(envelope)

    def adopt_messages(self, messages: Sequence[Message]) -> None:
        """Remember what another process committed. Its events showed it already, but for prompts."""
        self._show_prompts(messages)
        self._remember(messages)
        self.usage = _last_usage(self._messages)

    async def commit(self, *messages: Message) -> None:
        """Remember at once, write as soon as the disk allows. A prompt that was not shown yet is shown."""
        self._show_prompts(messages)
        self._remember(messages)
        await self.write(*messages)

    async def write(self, *messages: Message) -> None:
        """Write remembered messages as soon as the disk allows."""
        if messages:
            await self.journal_queue.commit(*messages)

    def add(self, *messages: Message) -> None:
        """Show and remember at once, write soon."""
        for message in messages:
            self.show(message)
        self._remember(messages)
        self.journal_queue.add_messages(*messages)

    def replace_history(self, messages: Sequence[Message]) -> None:
        """Continue from these messages instead. What they replace stays on the disk, as another branch."""
        same = _common_prefix_length(self._messages, messages)
        # A message on the disk never becomes another one: what was edited gets an id of its own.
        ids = {message.id: new_id() for message in messages[same:] if message.id in self.known_ids}
        new = [_with_new_id(message, ids) for message in messages[same:]]
        if same < len(self._messages):
            head = self._messages[same - 1].id if same else self.branches.above
            self.journal_queue.change_record(head_message_id=head)
        if new:
            self.journal_queue.add_messages(*new)
        self._show_instead(same, new)

    def show_branch(self, part: BranchPart) -> None:
        """Continue from another branch, which is on the disk as it is; `part` is its end, or all of it."""
        self.journal_queue.change_record(head_message_id=part.messages[-1].id)
        first = _first_in_memory(part, self._messages)
        if first is not None:
            self.prepend(replace(part, messages=part.messages[:first]))
        messages = _join(self._messages, self.branches.above, part)
        if messages is None:
            self.branches.leave_all(self._messages)
            self.branches.prepend(part.branch_points, None if part.above is None else part.above.id)
            self.above = part.above
            self._replace(0, part.messages)
        else:
            same = _common_prefix_length(self._messages, messages)
            self._show_instead(same, messages[same:])
        self._offer_continue()

    def delete_messages(
        self, deletion: Deletion, branch: Sequence[Message], **changes: Unpack[ConversationChanges]
    ) -> None:
        """Delete messages for good, with these changes, and show the branch that ends in the new head."""
        if deletion.head != self.head:
            changes["head_message_id"] = deletion.head
        self.journal_queue.delete_messages(deletion.root, **changes)
        same = _common_prefix_length(self._messages, branch)
        if same < max(len(self._messages), len(branch)):
            self._show_instead(same, branch[same:])
        self.branches.forget(deletion.ids)
        self._offer_continue()

    def _show_instead(self, same: int, messages: Sequence[Message]) -> None:
        """Keep so many messages, and go on with these."""
        if same < len(self._messages):
            self.branches.leave(self._messages, same)
        self._replace(same, messages)

    def _replace(self, same: int, messages: Sequence[Message]) -> None:
        saved = self.transcript.saved_calls
        unchanged = same
        # The result of a call is shown with the call.
        while 0 < unchanged < len(self._messages) and self._messages[unchanged].role is Role.TOOL:
            unchanged -= 1
        changes = self.transcript.cut_after(self._messages[:unchanged])
        del self._messages[same:]
        self._remember(messages)
        self.usage = _last_usage(self._messages)
        for message in self._messages[unchanged:]:
            changes += self.transcript.add_message(message)
        changes += self.transcript.mark_saved_calls(saved)
        self.notify_changes(changes)

    async def flush(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed."""
        await self.journal_queue.flush()

    async def close(self) -> None:
        """Write what is left; later writes raise WrongUse."""
        await self.journal_queue.close()
        await self.rule_queue.close()

    def _show_prompts(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if is_own_prompt(message) and not _is_shown(message, self.transcript):
                self.show(message)

    def _remember(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.branches.add(self.head, message.id)
            self._messages.append(message)
        self.known_ids.update(message.id for message in messages)

    def show_event(self, envelope: Envelope) -> None:
        """Show an event; nothing is written, and listeners for events are not notified."""
        changes = self.transcript.apply(envelope)
        if self._change_listeners:
            self.notify_changes(changes)
        if isinstance(envelope.event, UsageUpdate) and envelope.parent_run_id is None:
            self.usage = envelope.event.usage

    def _on_run_end(self, end: RunEnd) -> None:
        if end not in _NORMAL_ENDS:
            self._offer_continue()

    def _offer_continue(self) -> None:
        """Offer to continue after a prompt without an answer, or an interrupted answer."""
        last = last_message_but_undo_notes(self._messages)
        if last is None or self._is_followed:
            return
        if last.role in {Role.USER, Role.TOOL}:
            self.notify_changes(self.transcript.offer_continue(NOT_ANSWERED_YET, RemedyAction.RETRY))
        elif last.state is MessageState.INTERRUPTED:
            self.notify_changes(self.transcript.offer_continue(CAN_CONTINUE, RemedyAction.CONTINUE))

    def _notify_event(self, envelope: Envelope, pieces: Sequence[Event] = ()) -> None:
        if isinstance(envelope.event, PIECES):
            _notify_pieces(self._piece_listeners, self._single_piece_listeners, envelope, pieces)
            return
        for listener in tuple(self.internal_listeners):
            notify(listener, envelope)
        if self._event_listeners:
            # Changes that listeners make must not reach what is stored, asked about or run.
            envelope = replace(envelope, event=deep_copy(envelope.event))
        for listener in self._event_listeners:
            notify(listener, envelope)

    def _on_write_error(self, trouble: StorageFailed | None) -> None:
        if self._trouble_notice is not None and trouble is None:
            self.notify_changes(self.transcript.resolve_notice(self._trouble_notice, SAVED_NOW))
        self._trouble_notice = None
        # What ends the session is reported by an event.
        if trouble is not None and not isinstance(trouble, WrittenElsewhere | DatabaseReplaced):
            changes = self.transcript.add_notice(trouble.sentence, trouble.remedy, error=True)
            item = self.transcript[len(self.transcript) - 1]
            self._trouble_notice = item if isinstance(item, NoticeItem) else None
            self.notify_changes(changes)

    def notify_changes(self, changes: Sequence[Change]) -> None:
        """Notify listeners of changes in the transcript."""
        if changes:
            news = tuple(changes)
            for listener in self._change_listeners:
                notify(listener, news)


def _notify_pieces(
    listeners: Sequence[PieceListener],
    single_listeners: Sequence[EventListener],
    envelope: Envelope,
    pieces: Sequence[Event],
) -> None:
    # Nothing in these can be changed, and they come by the thousand: no copies.
    for piece_listener in listeners:
        notify(piece_listener, envelope, pieces or (envelope.event,))
    if single_listeners:
        for single in single_envelopes(envelope, pieces):
            for listener in single_listeners:
                notify(listener, single)


def _is_shown(prompt: Message, transcript: Transcript) -> bool:
    # From the end: one that is shown already was so a moment ago.
    return any(isinstance(item, UserItem) and item.message_id == prompt.id for item in reversed(transcript))


def _last_usage(messages: Sequence[Message]) -> Usage | None:
    """Return the usage of the last answer; that of a summary says nothing about how full the context is."""
    return next(
        (message.usage for message in reversed(messages) if message.usage and message.role is Role.ASSISTANT), None
    )


def _with_new_id(message: Message, ids: Mapping[str, str]) -> Message:
    """Return the message with its new id, if it gets one; a summary still names the message that it kept."""
    blocks = tuple(_with_new_reference(block, ids) for block in message.blocks)
    return message.model_copy(update={"id": ids.get(message.id, message.id), "blocks": blocks})


def _with_new_reference(block: Block, ids: Mapping[str, str]) -> Block:
    if not isinstance(block, Summary):
        return block
    return block.model_copy(update={"first_kept_id": ids.get(block.first_kept_id, block.first_kept_id)})


def _first_in_memory(part: BranchPart, history: Sequence[Message]) -> int | None:
    """Return the index in a part of the first message of the history."""
    first = history[0].id if history else ""
    return next((index for index, message in enumerate(part.messages) if message.id == first), None)


def _join(history: Sequence[Message], above: str | None, part: BranchPart) -> Sequence[Message] | None:
    """Return the messages of the history that a part of another branch continues, and that part; None where none are.

    `above` is the id of the message before the history.
    """
    joint = None if part.above is None else part.above.id
    if joint == above:
        return part.messages
    for index, message in enumerate(history, 1):
        if message.id == joint:
            return (*history[:index], *part.messages)
    return None


def _common_prefix_length(before: Sequence[Message], after: Sequence[Message]) -> int:
    count = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        count += 1
    return count
