"""What nobody said and the person should know: a sentence for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from desktop_agent.conversation.folding.undo_notes import REDO_AUTHOR
from desktop_agent.vocabulary.engine_events import (
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
from desktop_agent.vocabulary.errors import RemedyAction, Sentence
from desktop_agent.vocabulary.messages import Message

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
