"""Why an answer ended, in words: said for what a person would not expect."""

from dataclasses import dataclass
from typing import Any

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import RemedyAction, Sentence
from desktop_agent.vocabulary.provider_events import StopReason

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
