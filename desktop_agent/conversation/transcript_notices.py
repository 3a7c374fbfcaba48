"""Notices of the transcript: why an answer ended, what changed, and what the model reads of an undo."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from desktop_agent.conversation.items import Change, ItemList, NoticeItem, Removed, Updated
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.engine_events import (
    AnswerAwaited,
    CheckpointRestored,
    ContextCompacted,
    ContinuationInjected,
    ErrorOccurred,
    Event,
    GuardAborted,
    LimitReached,
    ModeChanged,
    OutsideContentArrived,
    QuestionAnswered,
    RetryScheduled,
)
from desktop_agent.types.errors import RemedyAction, Sentence, join_remedy
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import StopReason
from desktop_agent.types.tool_calls import source_in_sentence

EMPTY_ANSWER = Sentence("The model ended its answer without saying anything.")
CONTENT_FILTERED = Sentence("The provider's content filter withheld the rest of this answer.")
DECLINED = Sentence("The model declined to answer.")
CONTEXT_TOO_LONG = Sentence("The conversation has become longer than this model can read.")
SHORTEN_REMEDY = Sentence("Start a new conversation, or choose a model with a larger context.")
MALFORMED_CALL = Sentence("The model wrote a call that its own server could not read.")
UNKNOWN_END = Sentence("The answer ended for a reason that this version does not know.")
NOT_ENDED = Sentence("The server did not end its answer.")
MISSING_CALL = Sentence("The server said that the model calls a tool, but no call came.")
MERGE_AUTHOR = "merge"
"""The author of the note before each part of a conversation that was made of several."""
_MAX_DETAIL = 1000
# The servers' own words: Anthropic's explanation, Gemini's finishMessage and statusMessage.
_EXPLANATIONS = ("explanation", "finishMessage", "message")
_CATEGORIES = ("category", "blockReason")


@dataclass(frozen=True, slots=True)
class NoticeText:
    """A sentence, its remedy, and the button for that. `detail` can be copied, the lines in `folded` can be opened."""

    sentence: Sentence
    remedy: Sentence | None = None
    action: RemedyAction = RemedyAction.NONE
    detail: str = ""
    folded: tuple[Sentence | str, ...] = ()


def explain_ending(reason: StopReason | None, details: JsonObject | None, raw: str | None = None) -> NoticeText | None:
    """Return the notice below an answer that ended like this, or None where no explanation is needed."""
    details = details or {}
    if details.get("no_call"):
        # This says more than that nothing came at all.
        return NoticeText(MISSING_CALL, action=RemedyAction.RETRY)
    if details.get("empty"):
        return NoticeText(EMPTY_ANSWER, action=RemedyAction.RETRY)
    match reason:
        case StopReason.CONTENT_FILTER:
            return NoticeText(_with_explanation(CONTENT_FILTERED, details))
        case StopReason.REFUSAL:
            return NoticeText(_with_explanation(DECLINED, details))
        case StopReason.CONTEXT_WINDOW_EXCEEDED:
            return NoticeText(CONTEXT_TOO_LONG, SHORTEN_REMEDY)
        case StopReason.MALFORMED_TOOL_CALL:
            return NoticeText(_with_explanation(MALFORMED_CALL, details), action=RemedyAction.RETRY)
        case StopReason.UNKNOWN:
            word = raw or details.get("raw")
            return NoticeText(_with_explanation(_unknown_end(word), details))
        case _:
            return NoticeText(NOT_ENDED) if details.get("unended") else None


def _unknown_end(word: Any) -> Sentence:
    if not isinstance(word, str) or not word:
        return UNKNOWN_END
    template = "The answer ended for a reason that this version does not know: “{reason}”."
    return Sentence(template, {"reason": word[:200]})


def _with_explanation(sentence: Sentence, details: JsonObject) -> Sentence:
    """Return the sentence followed by the server's own words, where it has any."""
    explanation = _first_text(details, _EXPLANATIONS)
    category = _first_text(details, _CATEGORIES)
    if explanation and category:
        values = {"what": sentence, "why": explanation, "category": category}
        return Sentence("{what} The provider says: {why} ({category})", values)
    if explanation or category:
        return Sentence("{what} The provider says: {why}", {"what": sentence, "why": explanation or category})
    return sentence


def _first_text(details: JsonObject, names: tuple[str, ...]) -> str:
    values = (details.get(name) for name in names)
    return next((value[:_MAX_DETAIL] for value in values if isinstance(value, str) and value), "")


UNDO_AUTHOR = "undo"
REDO_AUTHOR = "redo"
_MAX_FILES = 50
_UNDO_HEAD = "The program notes: the person undid what calls of yours had changed."
_REDO_HEAD = "The program notes: the person redid what had been undone of your calls."
_READ_AGAIN = "Look at these files again before you rely on what you remember of them."
_PUT_BACK = Sentence("These files were put back:")
_NOT_PUT_BACK = Sentence("These files were not put back, and are as they were left or changed since:")
_TAKEN_BACK = Sentence("Undone by tools:")
UNDONE_STATES = (Sentence("as it was before"), Sentence("removed, as it was not there before"))
"""For a file that existed before, and for one that did not."""
REDONE_STATES = (
    Sentence("as it was before it was undone"),
    Sentence("removed, as it was not there before it was undone"),
)


def undo_note(
    changed: Mapping[str, str], skipped: Iterable[str], undone: Sequence[str] = (), *, is_redo: bool = False
) -> Message | None:
    """Return the note about files that were restored (`changed`) or skipped (`skipped`), and what tools undid.

    `is_redo`: the files are as they were before an undo. Return None where nothing was changed.
    """
    if not changed and not undone:
        return None
    parts = [_REDO_HEAD if is_redo else _UNDO_HEAD]
    if changed:
        entries = [f"{_as_code(path)}: {what}" for path, what in changed.items()]
        parts.append(_bullet_list(_PUT_BACK, entries))
    skipped_paths = [_as_code(path) for path in dict.fromkeys(skipped) if path not in changed]
    if skipped_paths:
        parts.append(_bullet_list(_NOT_PUT_BACK, skipped_paths))
    if undone:
        parts.append(_bullet_list(_TAKEN_BACK, undone))
    if changed:
        parts.append(_READ_AGAIN)
    return Message.user("\n\n".join(parts)).model_copy(update={"injected_by": REDO_AUTHOR if is_redo else UNDO_AUTHOR})


def is_undo_note(message: Message) -> bool:
    """Return whether a message is a note of an undo or a redo."""
    return message.role is Role.USER and message.injected_by in {UNDO_AUTHOR, REDO_AUTHOR}


def last_message_but_undo_notes(history: Sequence[Message]) -> Message | None:
    """Return the last message that is no undo note: a note needs no answer."""
    return next((message for message in reversed(history) if not is_undo_note(message)), None)


def _details(note: Message) -> tuple[Sentence | str, ...]:
    """Return the lines of what such a note lists; what it says to the model alone is left out."""
    text = note.text.removeprefix(_UNDO_HEAD).removeprefix(_REDO_HEAD).removesuffix(_READ_AGAIN)
    return tuple(map(_read_line, text.strip("\n").split("\n")))


def _read_line(line: str) -> Sentence | str:
    """Return the sentence of a line of a note; what came from elsewhere stays as it is."""
    for head in (_PUT_BACK, _NOT_PUT_BACK, _TAKEN_BACK):
        if line == str(head):
            return head
    for state in (*UNDONE_STATES, *REDONE_STATES):
        if line.endswith(f"`: {state}"):
            return Sentence("{path}: {state}", {"path": line.removesuffix(f": {state}"), "state": state})
    more = re.fullmatch("- and ([0-9]+) more", line)
    return _and_more(more[1]) if more else line


def _and_more(count: str) -> Sentence:
    return Sentence("- and {count} more", {"count": count})


def _bullet_list(head: Sentence, lines: Sequence[str]) -> str:
    bullets = [f"- {line}" for line in lines[:_MAX_FILES]]
    more = [str(_and_more(f"{len(lines) - _MAX_FILES}"))] if len(lines) > _MAX_FILES else []
    return "\n".join([str(head), "", *bullets, *more])


def _as_code(path: str) -> str:
    return f"`{path.replace('`', chr(39))}`"


COMPACTED = Sentence("Older messages were summarised for the model, to make room. You still see all of them.")
REDONE = Sentence("Changes were redone. The model is told before it goes on.")
UNDONE = Sentence("Changes were undone. The model is told before it goes on.")
NOT_ANSWERED = Sentence("The question was not answered.")
_OUTSIDE_CONTENT = (
    "Content from {source} came in. You are asked again about calls that could send data or run something, even if a "
    "rule allows them."
)
_MAX_PATHS = 3
_TITLES = {"default": Sentence("Default"), "plan": Sentence("Plan"), "accept-edits": Sentence("Accept edits")}


def compacted_notice(summary: str) -> NoticeText:
    """Return the notice of a summary, which opens."""
    return NoticeText(COMPACTED, folded=(summary,) if summary else ())


def merged_notice(note: Message) -> NoticeText:
    """Return the notice before a part of a merged conversation, which the model reads too."""
    return NoticeText(Sentence("{text}", {"text": note.text}))


_MAX_NAME = 100


def continued_notice(name: str) -> NoticeText:
    """Return the notice that something other than the person made the model go on."""
    # In an imported message the name may be anything.
    return NoticeText(Sentence("“{name}” let the work go on.", {"name": " ".join(name.split())[:_MAX_NAME]}))


def undo_notice(note: Message) -> NoticeText:
    """Return the notice of an undo or redo, with what the note lists that the model reads."""
    return NoticeText(REDONE if note.injected_by == REDO_AUTHOR else UNDONE, folded=_details(note))


def limit_sentence(event: LimitReached) -> Sentence:
    """Return which limit was reached."""
    return Sentence("A limit was reached: {which}.", {"which": event.sentence or event.which})


def retry_sentence(event: RetryScheduled) -> Sentence:
    """Return why the request is sent again, and when."""
    seconds = round(event.after)
    remedy = Sentence("Trying again in {seconds} s.", {"seconds": f"{seconds}"})
    why = event.sentence or Sentence("{why}", {"why": event.why})
    return join_remedy(why, remedy if seconds else Sentence("Trying again."))


def notice_for(event: Event) -> NoticeText | None:
    """Return the notice for an event, or None where it shows by itself."""
    match event:
        case ContextCompacted():
            return compacted_notice(event.summary)
        case LimitReached():
            return NoticeText(limit_sentence(event), action=RemedyAction.CONTINUE)
        case ContinuationInjected():
            return continued_notice(event.guard_name)
        case GuardAborted():
            values = {"name": event.guard_name, "reason": event.reason}
            return NoticeText(Sentence("The guard “{name}” was removed: {reason}", values))
        case CheckpointRestored():
            return _restore_notice(event)
        case OutsideContentArrived():
            return NoticeText(Sentence(_OUTSIDE_CONTENT, {"source": source_in_sentence(event.kind, event.name)}))
        case _:
            return _agent_notice(event)


def _agent_notice(event: Event) -> NoticeText | None:
    match event:
        case ModeChanged(from_mode=before, to_mode=mode) if before == mode:
            return NoticeText(Sentence("The mode stays “{mode}”.", {"mode": _mode_title(mode)}))
        case ModeChanged(authority="agent"):
            return NoticeText(Sentence("The agent changed the mode to “{mode}”.", {"mode": _mode_title(event.to_mode)}))
        case QuestionAnswered(answer=None):
            return NoticeText(NOT_ANSWERED)
        case QuestionAnswered(answer=str(answer)):
            return NoticeText(Sentence("You answered: {answer}", {"answer": answer}))
        case _:
            return None


def _mode_title(name: str) -> Sentence | str:
    """Return a mode's title; a mode that the person made is shown by its name."""
    return _TITLES.get(name, name)


def _restore_notice(event: CheckpointRestored) -> NoticeText | None:
    """Return what went wrong in a restore, or is shown nowhere else."""
    sentences: list[Sentence] = []
    if event.undone:
        sentences.append(Sentence("A call was undone: {words}", {"words": event.undone}))
    if event.not_undone:
        sentences.append(Sentence("A call was not undone: {why}", {"why": event.not_undone}))
    if event.conflicts:
        values = {"paths": _joined_paths(event.conflicts)}
        sentences.append(Sentence("Not put back, because they were changed since: {paths}", values))
    if event.failed:
        sentences.append(Sentence("These files could not be put back: {paths}", {"paths": _joined_paths(event.failed)}))
    if not sentences:
        return None
    paths = (*event.conflicts, *event.failed)
    first, more = sentences[:2], sentences[2:]
    detail = [*map(str, more), *(paths if len(paths) > _MAX_PATHS else ())]
    return NoticeText(first[0], first[1] if len(first) > 1 else None, detail="\n".join(detail))


def _joined_paths(paths: Sequence[str]) -> str:
    listed = ", ".join(paths[:_MAX_PATHS])
    return f"{listed}, …" if len(paths) > _MAX_PATHS else listed


_CONTINUE_ACTIONS = frozenset({RemedyAction.RETRY, RemedyAction.CONTINUE, RemedyAction.GO_ON})


class PassingNotices:
    """Notices at the end that are removed by whatever follows: no answer came yet, and the offer to continue."""

    def __init__(self, items: ItemList) -> None:
        self._items = items
        self._waiting: NoticeItem | None = None
        self._offer: NoticeItem | None = None

    @property
    def is_waiting(self) -> bool:
        """Return whether it is shown that nothing has come yet."""
        return self._waiting is not None

    @property
    def offers_continue(self) -> bool:
        """Return whether the last notices offer to continue."""
        return any(notice.action in _CONTINUE_ACTIONS for _, notice in self._items.last_notices())

    def show_waiting(self, event: AnswerAwaited) -> list[Change]:
        """Show that nothing has come yet, in one line that counts the seconds."""
        sentence = Sentence("No answer yet, {seconds} s.", {"seconds": f"{event.seconds:.0f}"})
        if self._waiting is not None:
            self._waiting.sentence = sentence
            return [Updated(self._index_of(self._waiting), "state")]
        self._waiting = NoticeItem(self._items.new_id(), "notice", sentence)
        return [self._items.add(self._waiting)]

    def end_waiting(self) -> list[Change]:
        """Remove the line that counts the seconds."""
        ended, self._waiting = self._waiting, None
        return self._remove(ended)

    def offer_continue(self, sentence: Sentence, action: RemedyAction) -> list[Change]:
        """Offer at the end, once, to continue, until something is said or a run begins."""
        if self.offers_continue:
            return []
        self._offer = NoticeItem(self._items.new_id(), "notice", sentence, action=action)
        return [self._items.add(self._offer)]

    def end_offer(self) -> list[Change]:
        """Remove the offer."""
        ended, self._offer = self._offer, None
        return self._remove(ended)

    def retire_remedies(self) -> list[Change]:
        """Take the buttons from the notices at the end: a new prompt follows, and they would act on that.

        Only a Retry that belongs to no error stays: it sends a message that waits.
        """
        changes = list[Change]()
        for index, item in self._items.last_notices():
            if item.action in _CONTINUE_ACTIONS and (item.level == "error" or item.action is not RemedyAction.RETRY):
                item.action = RemedyAction.NONE
                changes.append(Updated(index, "state"))
        return changes

    def forget(self, removed: Collection[NoticeItem]) -> None:
        """Forget notices that were removed."""
        if self._offer in removed:
            self._offer = None

    def _remove(self, notice: NoticeItem | None) -> list[Change]:
        if notice is None:
            return []
        index = self._index_of(notice)
        del self._items.items[index]
        return [Removed(index, 1)]

    def _index_of(self, notice: NoticeItem) -> int:
        """Return the index of a notice: at the end, or before other notices."""
        items = self._items.items
        return next(index for index in reversed(range(len(items))) if items[index] is notice)


_NUMBERS = re.compile(r"[0-9.,]+")
"""In a server's sentence: how much was used, and for how long to wait. They differ each time."""


def _fails_as_before(notice: NoticeItem, event: ErrorOccurred) -> bool:
    texts = {_NUMBERS.sub("", str(sentence)) for sentence in (notice.sentence, event.sentence)}
    return notice.level == "error" and notice.action is event.action and len(texts) == 1


class FailureNotices:
    """Notices of requests that failed: the next attempt takes their place, and is counted where it fails as before."""

    def __init__(self, items: ItemList) -> None:
        self._items = items
        self._added: list[NoticeItem] = []
        """Since the last answer began."""

    def add_retry(self, event: RetryScheduled) -> list[Change]:
        """Show that the request is sent again."""
        return [self._add(NoticeItem(self._items.new_id(), "notice", retry_sentence(event)))]

    def add_error(self, event: ErrorOccurred) -> list[Change]:
        """Show what failed, in place of the notice that the request is sent again."""
        removed = self._remove(lambda notice: notice.level == "notice" and self._is_added(notice))
        items = self._items.items
        before = items[-1] if items else None
        if not isinstance(before, NoticeItem) or not _fails_as_before(before, event):
            remedy, action, detail = event.remedy, event.action, event.detail
            notice = NoticeItem(self._items.new_id(), "error", event.sentence, remedy, action, detail)
            return [*removed, self._add(notice)]
        before.times += 1
        before.sentence, before.remedy, before.detail = event.sentence, event.remedy, event.detail
        return [*removed, Updated(len(items) - 1, "state")]

    @property
    def are_open(self) -> bool:
        """Return whether something failed, or was sent again, since the last answer began."""
        return bool(self._added)

    def end(self) -> list[Change]:
        """Remove the failures at the end: the answer begins. Without an error, retry notices stay."""
        failed = [notice for _, notice in self._items.last_notices() if notice.level == "error"]
        removed = self._remove(self._is_added) if any(map(self._is_added, failed)) else []
        self._added = []
        return removed

    def end_remedied(self, action: RemedyAction) -> list[Change]:
        """Remove errors at the end whose remedy was taken."""
        return self._remove(lambda notice: notice.level == "error" and notice.action is action)

    def _add(self, notice: NoticeItem) -> Change:
        self._added.append(notice)
        return self._items.add(notice)

    def _is_added(self, notice: NoticeItem) -> bool:
        return any(notice is added for added in self._added)

    def _remove(self, matches: Callable[[NoticeItem], bool]) -> list[Change]:
        """Remove those of the notices at the end that match."""
        changes = list[Change]()
        for index, notice in self._items.last_notices():
            if matches(notice):
                del self._items.items[index]
                changes.append(Removed(index, 1))
        return changes
