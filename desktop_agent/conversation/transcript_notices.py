"""Notices of the transcript: why an answer ended, what changed, and what the model is told of an undo."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.engine_events import (
    CheckpointRestored,
    ContextCompacted,
    ContinuationInjected,
    Event,
    GuardAborted,
    LimitReached,
    ModeChanged,
    OutsideContentArrived,
    QuestionAnswered,
)
from desktop_agent.types.errors import RemedyAction, Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import StopReason

EMPTY_ANSWER = Sentence("The model ended its answer without saying anything.")
CONTENT_FILTERED = Sentence("The provider's content filter withheld the rest of this answer.")
DECLINED = Sentence("The model declined to answer.")
CONTEXT_TOO_LONG = Sentence("The conversation has become longer than this model can read.")
SHORTEN_REMEDY = Sentence("Start a new conversation, or choose a model with a larger context.")
MALFORMED_CALL = Sentence("The model wrote a call that its own server could not read.")
UNKNOWN_END = Sentence("The answer ended for a reason that this version does not know.")
NOT_ENDED = Sentence("The server did not end its answer.")
MISSING_CALL = Sentence("The server said that the model calls a tool, but no call came.")
_MAX_DETAIL = 1000
# The servers' own words: Anthropic's explanation, Gemini's finishMessage and statusMessage.
_EXPLANATIONS = ("explanation", "finishMessage", "message")
_CATEGORIES = ("category", "blockReason")


@dataclass(frozen=True, slots=True)
class AnswerEnding:
    """A sentence, what to do about it, and the button for that."""

    sentence: Sentence
    remedy: Sentence | None = None
    action: RemedyAction = RemedyAction.NONE


def explain_ending(
    reason: StopReason | None, details: JsonObject | None, raw: str | None = None
) -> AnswerEnding | None:
    """What to say below an answer that ended like this, or None where its end explains itself."""
    details = details or {}
    if details.get("no_call"):
        # Where nothing came at all it says more than that.
        return AnswerEnding(MISSING_CALL, action=RemedyAction.RETRY)
    if details.get("empty"):
        return AnswerEnding(EMPTY_ANSWER, action=RemedyAction.RETRY)
    match reason:
        case StopReason.CONTENT_FILTER:
            return AnswerEnding(_with_explanation(CONTENT_FILTERED, details))
        case StopReason.REFUSAL:
            return AnswerEnding(_with_explanation(DECLINED, details))
        case StopReason.CONTEXT_WINDOW_EXCEEDED:
            return AnswerEnding(CONTEXT_TOO_LONG, SHORTEN_REMEDY)
        case StopReason.MALFORMED_TOOL_CALL:
            return AnswerEnding(_with_explanation(MALFORMED_CALL, details), action=RemedyAction.RETRY)
        case StopReason.UNKNOWN:
            word = raw or details.get("raw")
            return AnswerEnding(_with_explanation(_unknown_end(word), details))
        case _:
            return AnswerEnding(NOT_ENDED) if details.get("unended") else None


def _unknown_end(word: Any) -> Sentence:
    if not isinstance(word, str) or not word:
        return UNKNOWN_END
    template = "The answer ended for a reason that this version does not know: “{reason}”."
    return Sentence(template, {"reason": word[:200]})


def _with_explanation(sentence: Sentence, details: JsonObject) -> Sentence:
    """With the server's own words behind it, where it has any."""
    explanation = _first_text(details, _EXPLANATIONS)
    category = _first_text(details, _CATEGORIES)
    if explanation and category:
        values = {"what": sentence, "why": explanation, "category": category}
        return Sentence("{what} The provider says: {why} ({category})", values)
    if explanation or category:
        return Sentence("{what} The provider says: {why}", {"what": sentence, "why": explanation or category})
    return sentence


def _first_text(details: JsonObject, names: tuple[str, ...]) -> str:
    found = (details.get(name) for name in names)
    return next((each[:_MAX_DETAIL] for each in found if isinstance(each, str) and each), "")


UNDO_AUTHOR = "undo"
REDO_AUTHOR = "redo"
_MAX_FILES = 50
_UNDO_HEAD = "The program notes: the person undid what calls of yours had changed."
_REDO_HEAD = "The program notes: the person redid what had been undone of your calls."
_READ_AGAIN = "Look at these files again before you rely on what you remember of them."


def undo_note(again: Mapping[str, str], left: Iterable[str], undone: Iterable[str]) -> Message | None:
    """The note about files that are `again` something, those that were `left`, and what tools say they undid.

    None where nothing was changed.
    """
    return _build_note(_UNDO_HEAD, UNDO_AUTHOR, again, left, list(undone))


def redo_note(again: Mapping[str, str], left: Iterable[str]) -> Message | None:
    """The same about files that are as they were before they were undone."""
    return _build_note(_REDO_HEAD, REDO_AUTHOR, again, left, [])


def _build_note(
    head: str, injected_by: str, again: Mapping[str, str], left: Iterable[str], said: Sequence[str]
) -> Message | None:
    if not again and not said:
        return None
    parts = [head]
    if again:
        parts.append(
            _bullet_list("These files were put back:", [f"{_as_code(path)}: {what}" for path, what in again.items()])
        )
    kept = [_as_code(path) for path in dict.fromkeys(left) if path not in again]
    if kept:
        parts.append(_bullet_list("These files were not put back, and are as they were left or changed since:", kept))
    if said:
        parts.append(_bullet_list("This was taken back by tools:", said))
    if again:
        parts.append(_READ_AGAIN)
    return Message.user("\n\n".join(parts)).model_copy(update={"injected_by": injected_by})


def is_undo_note(message: Message) -> bool:
    """Whether a message is such a note."""
    return message.role is Role.USER and message.injected_by in {UNDO_AUTHOR, REDO_AUTHOR}


def last_message_but_undo_notes(history: Sequence[Message]) -> Message | None:
    """The last message that is no such note: a note asks for no answer."""
    return next((each for each in reversed(history) if not is_undo_note(each)), None)


def _bullet_list(head: str, lines: Sequence[str]) -> str:
    shown = [f"- {line}" for line in lines[:_MAX_FILES]]
    more = [f"- and {len(lines) - _MAX_FILES} more"] if len(lines) > _MAX_FILES else []
    return "\n".join([head, "", *shown, *more])


def _as_code(path: str) -> str:
    return f"`{path.replace('`', chr(39))}`"


COMPACTED = Sentence("Older messages were summarised for the model, to make room. You still see all of them.")
REDONE = Sentence("Changes were redone. The model is told with your next message.")
UNDONE = Sentence("Changes were undone. The model is told with your next message.")
NOT_ANSWERED = Sentence("The question was not answered.")
_OUTSIDE_CONTENT = (
    "Content from {source} came in. What could send something out or run something is asked about again, also where "
    "it was allowed for good."
)
_MAX_PATHS = 3
_TITLES = {"default": Sentence("Default"), "plan": Sentence("Plan"), "accept-edits": Sentence("Accept edits")}


@dataclass(frozen=True, slots=True)
class NoticeText:
    """What a notice says. `detail` can be copied, `folded` can be opened."""

    sentence: Sentence
    remedy: Sentence | None = None
    action: RemedyAction = RemedyAction.NONE
    detail: str = ""
    folded: str = ""


def continued_notice(name: str) -> NoticeText:
    """The model went on because something other than the person wanted it."""
    return NoticeText(Sentence("“{name}” let the work go on.", {"name": name}))


def undo_notice(note: Message) -> NoticeText:
    """The person took something back, or redid it, and the model reads this of it."""
    return NoticeText(REDONE if note.injected_by == REDO_AUTHOR else UNDONE, folded=note.text)


def notice_for(event: Event) -> NoticeText | None:
    """What to say about an event, or None where it shows by itself."""
    match event:
        case ContextCompacted():
            return NoticeText(COMPACTED, folded=event.summary)
        case LimitReached():
            sentence = Sentence("A limit was reached: {which}.", {"which": event.which})
            return NoticeText(sentence, action=RemedyAction.CONTINUE)
        case ContinuationInjected():
            return continued_notice(event.guard_name)
        case GuardAborted():
            values = {"name": event.guard_name, "reason": event.reason}
            return NoticeText(Sentence("The guard “{name}” was removed: {reason}", values))
        case CheckpointRestored():
            return _restore_notice(event)
        case OutsideContentArrived():
            return NoticeText(Sentence(_OUTSIDE_CONTENT, {"source": event.name}))
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
    """What a mode is called; one of the person's own goes by its short name here."""
    return _TITLES.get(name, name)


def _restore_notice(event: CheckpointRestored) -> NoticeText | None:
    """What did not go as it should, or shows nowhere else."""
    said: list[Sentence] = []
    if event.undone:
        said.append(Sentence("What a call did was taken back: {words}", {"words": event.undone}))
    if event.not_undone:
        said.append(Sentence("What a call did was not taken back: {why}", {"why": event.not_undone}))
    if event.conflicts:
        values = {"paths": _joined_paths(event.conflicts)}
        said.append(Sentence("Not put back, because they were changed since: {paths}", values))
    if event.failed:
        said.append(Sentence("These files could not be put back: {paths}", {"paths": _joined_paths(event.failed)}))
    if not said:
        return None
    paths = (*event.conflicts, *event.failed)
    shown, more = said[:2], said[2:]
    detail = [*map(str, more), *(paths if len(paths) > _MAX_PATHS else ())]
    return NoticeText(shown[0], shown[1] if len(shown) > 1 else None, detail="\n".join(detail))


def _joined_paths(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:_MAX_PATHS])
    return f"{shown}, …" if len(paths) > _MAX_PATHS else shown
