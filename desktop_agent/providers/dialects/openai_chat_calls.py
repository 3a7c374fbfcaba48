"""How calls of the history are written: ids in the shape that a server takes, arguments that are always JSON."""

import hashlib
import re
from typing import Literal

from desktop_agent.providers.transport.json_text import dumps
from desktop_agent.vocabulary.blocks import ToolUse

_NINE = re.compile(r"[A-Za-z0-9]{9}")


class CallIds:
    """Ids for one server: unchanged where they fit, else derived from themselves, the same in every request.

    Some Mistral models take exactly nine letters and digits; OpenAI takes at most forty characters.
    """

    def __init__(self, shape: Literal["any", "forty", "nine"]) -> None:
        self._shape = shape

    def of(self, call: ToolUse) -> str:
        """The id of a call and of its tool message."""
        if self._shape == "nine" and not _NINE.fullmatch(call.id):
            return hashlib.sha256(call.id.encode("utf-8", "surrogatepass")).hexdigest()[:9]
        if self._shape == "forty" and not 0 < len(call.id) <= 40:
            return "call_" + hashlib.sha256(call.id.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        return call.id


def arguments_text(call: ToolUse) -> str:
    """The arguments as JSON text. What could not be read as an object is shown to the model inside one."""
    if call.malformed is not None:
        return dumps({"malformed_arguments": call.malformed}).decode()
    return dumps(call.input).decode()
