"""What nobody said and the person should know: a sentence for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from desktop_agent.conversation.folding.undo_notes import REDO
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
PUT_BACK = Sentence("Changes were undone. The model is told with your next message.")
NOT_ANSWERED = Sentence("The question was not answered.")
_OUTSIDE = (
    "Content from {source} came in. What could send something out or run something is asked about again, also where "
    "it was allowed for good."
)
_NAMED_FILES = 3
_TITLES = {"default": Sentence("Default"), "plan": Sentence("Plan"), "accept-edits": Sentence("Accept edits")}


@dataclass(frozen=True, slots=True)
class Fact:
    """What a notice says. `detail` can be copied, `folded` can be opened."""

    sentence: Sentence
    remedy: Sentence | None = None
    action: RemedyAction = RemedyAction.NONE
    detail: str = ""
    folded: str = ""


def gone_on(name: str) -> Fact:
    """The model went on because something other than the person wanted it."""
    return Fact(Sentence("“{name}” let the work go on.", {"name": name}))


def undone(note: Message) -> Fact:
    """The person took something back, or redid it, and the model reads this of it."""
    return Fact(REDONE if note.injected_by == REDO else PUT_BACK, folded=note.text)


def fact(event: Event) -> Fact | None:
    """What to say about an event, or None where it shows by itself."""
    match event:
        case ContextCompacted():
            return Fact(COMPACTED, folded=event.summary)
        case LimitReached():
            sentence = Sentence("A limit was reached: {which}.", {"which": event.which})
            return Fact(sentence, action=RemedyAction.CONTINUE)
        case ContinuationInjected():
            return gone_on(event.guard_name)
        case GuardAborted():
            values = {"name": event.guard_name, "reason": event.reason}
            return Fact(Sentence("The guard “{name}” was removed: {reason}", values))
        case CheckpointRestored():
            return _restored(event)
        case OutsideContentArrived():
            return Fact(Sentence(_OUTSIDE, {"source": event.name}))
        case _:
            return _of_the_agent(event)


def _of_the_agent(event: Event) -> Fact | None:
    match event:
        case ModeChanged(from_mode=before, to_mode=mode) if before == mode:
            return Fact(Sentence("The mode stays “{mode}”.", {"mode": _titled(mode)}))
        case ModeChanged(authority="agent"):
            return Fact(Sentence("The agent changed the mode to “{mode}”.", {"mode": _titled(event.to_mode)}))
        case QuestionAnswered(answer=None):
            return Fact(NOT_ANSWERED)
        case QuestionAnswered(answer=str(answer)):
            return Fact(Sentence("You answered: {answer}", {"answer": answer}))
        case _:
            return None


def _titled(name: str) -> Sentence | str:
    """What a mode is called; one of the person's own goes by its short name here."""
    return _TITLES.get(name, name)


def _restored(event: CheckpointRestored) -> Fact | None:
    """What did not go as it should, or shows nowhere else."""
    said: list[Sentence] = []
    if event.undone:
        said.append(Sentence("What a call did was taken back: {words}", {"words": event.undone}))
    if event.not_undone:
        said.append(Sentence("What a call did was not taken back: {why}", {"why": event.not_undone}))
    if event.conflicts:
        values = {"paths": _named(event.conflicts)}
        said.append(Sentence("Not put back, because they were changed since: {paths}", values))
    if event.failed:
        said.append(Sentence("These files could not be put back: {paths}", {"paths": _named(event.failed)}))
    if not said:
        return None
    paths = (*event.conflicts, *event.failed)
    shown, more = said[:2], said[2:]
    detail = [*map(str, more), *(paths if len(paths) > _NAMED_FILES else ())]
    return Fact(shown[0], shown[1] if len(shown) > 1 else None, detail="\n".join(detail))


def _named(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:_NAMED_FILES])
    return f"{shown}, …" if len(paths) > _NAMED_FILES else shown
