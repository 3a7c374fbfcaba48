"""The parts of an answer, one after another, with their signatures kept apart and on the part they came with."""

from typing import Any

from desktop_agent.providers.dialects.gemini.grounding import Grounding
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.json_text import dumps, is_array, is_object, object_in, repair_json, repair_text
from desktop_agent.vocabulary.blocks import Citation, ServerStep, Unknown

PROVIDER = "gemini"
# Steps that the server took itself; they go back as they came.
SERVER_STEPS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")


class PartReader:
    """Reads the parts of one answer into a PartBuilder."""

    def __init__(self, builder: PartBuilder) -> None:
        self._builder = builder
        self._show = builder.main.text
        self._calls = 0
        self._call_id: str | None = None  # of the open call
        self._said: list[tuple[str | None, Any]] = []
        self._before = ""  # the answer's text up to the piece that is open
        self._open: list[str] = []
        # A signature waits for what follows its text: citations come behind it, and belong to the text.
        self._signature: dict[str, Any] | None = None

    def text(self, piece: str) -> None:
        """A piece of text that has no signature."""
        if not piece:
            return
        if self._signature is not None or self._call_id is not None:
            self.release()
        self._open.append(piece)
        self._show(piece)

    def part(self, part: dict[str, Any]) -> None:
        """Any part."""
        signature = part.get("thoughtSignature")
        if not isinstance(signature, str) or not signature:
            signature = None
        if _is_empty_call(part.get("functionCall")):
            part = {name: value for name, value in part.items() if name != "functionCall"}
        call, text = part.get("functionCall"), part.get("text")
        if is_object(call) or is_array(call):
            for each in call if is_array(call) else [call]:
                self._call(each if is_object(each) else {"args": each}, signature)
        elif isinstance(text, str) or (text is None and not part.keys() - {"thought", "thoughtSignature"}):
            if part.get("thought") is True:
                self._thought(text or "", signature)
            elif signature is None:
                self.text(text or "")
            else:
                self._signed_text(text or "", signature)
        else:
            self.release()
            self._builder.add_block(_parse_block(part))

    def close(self, grounding: Grounding) -> tuple[Citation, ...]:
        """The end of the answer. Returns citations that found no open text to stand in."""
        citations = grounding.citations(self._before, "".join(self._open))
        has_text = bool(self._open)
        if citations and has_text:
            self._builder.end_text(citations)
        self.release()
        return () if has_text else citations

    def release(self) -> None:
        """Something else follows: the piece of text is over, and its signature stands behind it. So is a call, which
        gateways say again with more in it."""
        if self._call_id is not None:
            self._call_id = None
            self._builder.end_calls(index=self._calls)
        if self._open:
            self._before += "".join(self._open)
            self._open.clear()
        if self._signature is not None:
            state, self._signature = self._signature, None
            self._builder.end_thinking()
            self._builder.end_thinking(**state)

    def _signed_text(self, text: str, signature: str) -> None:
        self.text(text)
        if self._signature is not None:
            self.release()
        self._signature = {"thoughtSignature": signature, "on": "text", "part_text": text}

    def _thought(self, text: str, signature: str | None) -> None:
        """A summary. One with a signature is a block of its own."""
        if not text and signature is None:
            return
        self.release()
        if signature is None:
            self._builder.thinking(text, thought=True)
            return
        self._builder.end_thinking()
        self._builder.thinking(text, thought=True, thoughtSignature=signature)
        self._builder.end_thinking()

    def _call(self, call: dict[str, Any], signature: str | None) -> None:
        """A call comes whole; missing arguments are none. Arguments in pieces (Vertex, where asked for) are not read,
        and a call without them must not run."""
        call_id, name = call.get("id"), call.get("name")
        own = call_id if isinstance(call_id, str) and call_id else None
        named = name if isinstance(name, str) else None
        arguments: Any = call.get("args")
        if own is None and self._builder.main.has_repeated and (named, arguments) in self._said:
            return  # a server that says all again
        self._said.append((named, arguments))
        if own is None or own != self._call_id or not self._builder.calls.continues_last(named, arguments):
            self.release()
            self._calls += 1
        index = self._calls
        if call.get("partialArgs") or call.get("willContinue"):
            arguments = f"in pieces: {dumps(call).decode()}"
        self._builder.add_call_fragment(index=index, id=own, name=named, arguments=arguments)
        if own is not None:
            # Only ids that the server gave go back to it.
            self._builder.calls.attach_metadata(None, {"id": own})
        if signature is not None:
            self._builder.attach_call_state(None, thoughtSignature=signature, on="functionCall")
        if own is None:
            self._builder.end_calls(index=index)
        else:
            self._call_id = own


def _is_empty_call(call: Any) -> bool:
    """Whether this is the filler that gateways write beside a text."""
    return is_object(call) and not any(call.values())


def _parse_block(part: dict[str, Any]) -> ServerStep | Unknown:
    """What is neither text nor a call: kept whole, with its signature."""
    raw = repair_json(part)
    code, outcome = object_in(part, "executableCode"), object_in(part, "codeExecutionResult")
    if code:
        return ServerStep(provider=PROVIDER, name="code_execution", text=_text(code.get("code")), raw=raw)
    if outcome:
        return ServerStep(provider=PROVIDER, name="code_execution_result", text=_text(outcome.get("output")), raw=raw)
    for name, what in (("toolCall", "args"), ("toolResponse", "response")):
        step = object_in(part, name)
        if step:
            tool = step.get("toolType")
            return ServerStep(
                provider=PROVIDER,
                name=repair_text(tool).lower() if isinstance(tool, str) and tool else name,
                text=_text(step.get(what)),
                raw=raw,
            )
    return Unknown(raw=raw, provider=PROVIDER)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return repair_text(value)
    return dumps(value).decode() if value else ""
