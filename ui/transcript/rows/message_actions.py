"""What the person can do with a message: the commands, the item below which they are, and the line that shows them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from desktop_agent.conversation.branches import Versions
from desktop_agent.conversation.items import AnswerItem, Item, NoticeItem, ToolCallItem, UserItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.errors import RemedyAction
from desktop_agent.types.messages import prompt_words
from ui.style.text import one_line, truncate
from ui.transcript.blocks.message_footer import MessageCommand, MessageFooter
from ui.transcript.rows.notice_rows import remedy_label
from ui.transcript.rows.render_context import MessageActions, RenderContext
from ui.transcript.rows.row import Row
from ui.transcript.words import tr

_MAX_SUBJECT = 80
"""Characters of the message that assistive technology reads after the name of a button."""
_MAX_READ = 400
"""Characters of an answer from which the subject is taken."""
_MARKS = re.compile(
    r"^[ \t]*(#+|>|[-*+])[ \t]+|^[ \t]*(```|~~~).*$|`+|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)", re.MULTILINE
)

_CONTINUE_ACTIONS = (RemedyAction.CONTINUE, RemedyAction.GO_ON)
"""After Stop or a crash, and after a limit."""


def carrier_of(items: Transcript, index: int) -> int | None:
    """Return the index of the item that has the commands of an item's message: a prompt, or the last item of an answer.

    None where a prompt has no answer: notices have no commands.
    """
    if not 0 <= index < len(items):
        return None
    if isinstance(items[index], UserItem):
        return index
    while index + 1 < len(items) and not isinstance(items[index + 1], UserItem):
        index += 1
    while index >= 0 and isinstance(items[index], NoticeItem):
        index -= 1
    return None if index < 0 or isinstance(items[index], UserItem) else index


def update_footer(row: Row, items: Transcript, index: int) -> bool:
    """Show below the row what can be done with its message now; return whether its height changed."""
    before = row.stack.height
    context = row.render_context
    message = _message_at(items, index, context.message_actions)
    if message is None:
        row.set_footer(None)
    else:
        row.set_footer((message, _refusal_of(context.message_actions)), lambda: _Commands(context, message).footer())
    return row.stack.height != before


def commands_at(items: Transcript, index: int, context: RenderContext) -> Sequence[MessageCommand]:
    """Return what can be done with the message of an item; nothing while it still grows."""
    carrier = carrier_of(items, index)
    message = None if carrier is None else _message_at(items, carrier, context.message_actions)
    return () if message is None else _Commands(context, message).all()


@dataclass(frozen=True, slots=True)
class _Message:
    """A message as its footer shows it: `following` is what other branches have below it, if it is the last.

    `subject` is how it begins; `offer` is the id and the action of the notice below it that offers to continue.
    """

    item_id: str
    message_id: str
    is_prompt: bool
    versions: Versions | None
    following: tuple[str, ...]
    subject: str
    offer: tuple[str, RemedyAction] | None


def _message_at(items: Transcript, index: int, actions: MessageActions | None) -> _Message | None:
    item = items[index]
    if actions is None or isinstance(item, NoticeItem):
        return None
    after = next((other for other in range(index + 1, len(items)) if not isinstance(items[other], NoticeItem)), None)
    is_prompt = isinstance(item, UserItem)
    # An answer that still grows has no last item yet.
    if not is_prompt and (actions.is_working if after is None else not isinstance(items[after], UserItem)):
        return None
    is_last = after is None and not actions.is_working
    following, offer = (actions.continuations, offer_at_end(items)) if is_last else ((), None)
    versions = _versions_at(items, index, actions)
    return _Message(item.id, item.message_id, is_prompt, versions, following, _subject_of(item), offer)


def offer_at_end(items: Transcript) -> tuple[str, RemedyAction] | None:
    """Return the id and the action of the notice at the end that offers to continue."""
    last = takewhile(lambda item: isinstance(item, NoticeItem), reversed(items))
    offers = (item for item in last if isinstance(item, NoticeItem) and item.action in _CONTINUE_ACTIONS)
    return next(((item.id, item.action) for item in offers), None)


def _subject_of(item: Item) -> str:
    match item:
        case UserItem():
            text = prompt_words(item.text)
        case AnswerItem():
            # It is read aloud, without the marks of headings, code and emphasis.
            text = _MARKS.sub("", str(item.text)[:_MAX_READ])
        case ToolCallItem():
            text = item.name
        case _:
            return ""
    return truncate(one_line(text, 2 * _MAX_SUBJECT), _MAX_SUBJECT)


def _versions_at(items: Transcript, index: int, actions: MessageActions) -> Versions | None:
    """Return the versions of a prompt, or of an answer those of its first message that has any."""
    if isinstance(items[index], UserItem) or not actions.versions:
        return actions.versions.get(items[index].message_id)
    versions = None
    while index >= 0 and not isinstance(items[index], UserItem):
        versions = actions.versions.get(items[index].message_id) or versions
        index -= 1
    return versions


def regenerate_with() -> str:
    """Return the name of the button that opens the menu of alternatives."""
    return tr("Regenerate with…")


def copy_name() -> str:
    """Return the name of the button that copies the message."""
    return tr("Copy")


class _Commands:
    def __init__(self, context: RenderContext, message: _Message) -> None:
        self._signals = context.signals
        self._message = message
        self._refusal = _refusal_of(context.message_actions)
        actions = context.message_actions
        self._version_refusal = "" if actions is not None and actions.is_only_read else self._refusal

    def footer(self) -> MessageFooter:
        """Put the versions at the outer edge: they are visible even where the other buttons are not."""
        message, versions = self._message, self._message.versions
        version_parts: list[MessageCommand | str] = list(self._version_commands())
        if versions is not None:
            version_parts.insert(1, tr("{0} of {1}").format(versions.index + 1, len(versions.ids)))
        if message.is_prompt:
            return MessageFooter(self._branch_commands(), [*self._message_commands(), *version_parts], message.subject)
        return MessageFooter([*version_parts, *self._message_commands()], self._branch_commands(), message.subject)

    def all(self) -> Sequence[MessageCommand]:
        """Return all commands, in the order of the menu."""
        return [*self._message_commands(), *self._version_commands(), *self._branch_commands()]

    def _message_commands(self) -> Sequence[MessageCommand]:
        signals, message = self._signals, self._message
        copy = partial(signals.copy_requested.emit, message.item_id)
        branch = partial(signals.branch_requested.emit, message.message_id)
        delete = partial(signals.delete_requested.emit, message.message_id)
        copying, branching, deleting = self._names(
            (tr("Copy your message"), tr("Copy this answer")),
            (tr("Branch from your message"), tr("Branch from this answer")),
            (tr("Delete your message…"), tr("Delete this answer…")),
        )
        commands = [
            MessageCommand(copy_name(), copy, "copy", "C", accessible_name=copying),
            self._command(tr("Branch from here"), branching, branch, "branch", "B"),
            replace(self._command(tr("Delete…"), deleting, delete, "trash", "Del"), is_destructive=True),
        ]
        if message.is_prompt:
            edit, editing = tr("Edit"), tr("Edit your message")
            run = partial(signals.edit_requested.emit, message.message_id)
            return [self._command(edit, editing, run, "pencil", "E"), *self._continue_commands(), *commands]
        anew = partial(signals.regenerate_requested.emit, message.message_id)
        choose = partial(signals.alternatives_requested.emit, message.item_id)
        commands[1:1] = [
            self._command(tr("Regenerate"), tr("Regenerate this answer"), anew, "refresh", "R"),
            self._command(regenerate_with(), tr("Regenerate this answer with…"), choose, "chevron-down", "Shift+R"),
            *self._continue_commands(),
        ]
        return commands

    def _continue_commands(self) -> Sequence[MessageCommand]:
        """Return what the button of the notice below the message does, if that offers to continue."""
        if self._message.offer is None:
            return []
        action = self._message.offer[1]
        run = partial(self._signals.remedy_requested.emit, *self._message.offer)
        (continuing,) = self._names((tr("Continue after your message"), tr("Continue this answer")))
        return [self._command(remedy_label(action), continuing, run, "play", "G")]

    def _names(self, *pairs: tuple[str, str]) -> Sequence[str]:
        """Return the first of each pair for a prompt, the second for an answer."""
        return [of_prompt if self._message.is_prompt else of_answer for of_prompt, of_answer in pairs]

    def _version_commands(self) -> Sequence[MessageCommand]:
        versions = self._message.versions
        if versions is None:
            return []
        first = tr("This is the first version.")
        last = tr("This is the newest version.")
        back, forth = tr("Previous version"), tr("Next version")
        going_back, going_forth = self._names(
            (tr("Previous version of your message"), tr("Previous version of this answer")),
            (tr("Next version of your message"), tr("Next version of this answer")),
        )
        return [
            self._show_version((back, going_back), versions.neighbour(-1), "chevron-left", "Alt+Left", otherwise=first),
            self._show_version(
                (forth, going_forth), versions.neighbour(1), "chevron-right", "Alt+Right", otherwise=last
            ),
        ]

    def _branch_commands(self) -> Sequence[MessageCommand]:
        return [self._show_version((tr("Show what followed"), ""), id_) for id_ in self._message.following[-1:]]

    def _show_version(
        self, names: tuple[str, str], message_id: str | None, icon: str = "", keys: str = "", otherwise: str = ""
    ) -> MessageCommand:
        run = partial(self._signals.version_requested.emit, message_id or "")
        refusal = self._version_refusal if message_id else otherwise
        return self._command(*names, run, icon, keys, refusal, is_permanent=True)

    def _command(
        self,
        name: str,
        accessible_name: str,
        run: Callable[[], None],
        icon: str,
        keys: str,
        refusal: str | None = None,
        *,
        is_permanent: bool = False,
    ) -> MessageCommand:
        """Return a command; while the conversation cannot be changed, it only shows the reason."""
        refusal = self._refusal if refusal is None else refusal
        run = partial(self._signals.action_refused.emit, refusal) if refusal else run
        return MessageCommand(name, run, icon, keys, refusal, is_permanent, accessible_name)


def _refusal_of(actions: MessageActions | None) -> str:
    if actions is None:
        return ""
    working = tr("The model is still working. Wait, or press Stop first.")
    return actions.refusal or (working if actions.is_working else "")
