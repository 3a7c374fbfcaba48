"""The error that is shown for an unexpected exception."""

import traceback
from pathlib import Path

from desktop_agent.types.errors import AgentError, Sentence

_MAX_FRAMES = 40


def internal_error(error: BaseException) -> AgentError:
    """Return an error whose details name the exception's kind and where it came from.

    The exception's message is left out: it may hold a person's words.
    """
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    lines = [f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} {frame.name}" for frame in frames]
    kind = type(error).__name__
    sentence = Sentence("Something went wrong inside the program ({kind}).", {"kind": kind})
    return AgentError(sentence, detail="\n".join([kind, *lines]))
