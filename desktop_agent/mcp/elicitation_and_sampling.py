"""Client features of MCP: answer a server's requests for roots, elicitation and sampling, and log its messages.

Tools in sampling: https://modelcontextprotocol.io/specification/2025-11-25/client/sampling. The server runs its calls
itself.
"""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    LoggingMessageNotificationParams,
    Root,
    SamplingMessageContentBlock,
    TextContent,
    ToolUseContent,
)
from pydantic import FileUrl

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.mcp import (
    ElicitationAnswer,
    ElicitationRequest,
    SamplingAnswer,
    SamplingContent,
    SamplingRequest,
    ServerCall,
    ServerRequestHandlers,
)
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.tool_calls import ToolSpec

MAX_SAMPLING_MESSAGES = 50
MAX_SAMPLING_TOOLS = 30
MAX_SAMPLING_LENGTH = 100_000
"""Characters of all that a person would have to read."""
# Names that model servers accept.
_VALID_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_Entry = tuple[Literal["user", "assistant"], SamplingContent]


class _UnsupportedRequest(Exception):
    """It cannot be shown to a person as it is, or no model could answer it."""


def parse_sampling_request(
    title: str, params: CreateMessageRequestParams, conversation_id: str | None = None
) -> SamplingRequest | None:
    """Return the request, or None for what no person could read or no model answer: pictures, sounds, too much text."""
    try:
        request = SamplingRequest(
            title,
            tuple(_parse_messages(params)),
            params.system_prompt or None,
            params.max_tokens,
            tools=_parse_tools(params),
            tool_choice=(params.tool_choice.mode if params.tool_choice else None) or "auto",
            conversation_id=conversation_id,
        )
        return request if request.characters <= MAX_SAMPLING_LENGTH else None
    except (_UnsupportedRequest, RecursionError):
        return None


def make_sampling_result(
    answer: SamplingAnswer, *, with_tools: bool
) -> CreateMessageResult | CreateMessageResultWithTools:
    """Return the answer in the form that fits the request."""
    text, stop_reason = TextContent(type="text", text=answer.text), "maxTokens" if answer.is_truncated else "endTurn"
    if not with_tools:
        return CreateMessageResult(role="assistant", content=text, model=answer.model, stop_reason=stop_reason)
    content: list[SamplingMessageContentBlock] = [text] if answer.text or not answer.calls else []
    content.extend(ToolUseContent(id=call.id, name=call.name, input=call.input) for call in answer.calls)
    stop_reason = "toolUse" if answer.calls else stop_reason
    return CreateMessageResultWithTools(role="assistant", content=content, model=answer.model, stop_reason=stop_reason)


def _parse_tools(params: CreateMessageRequestParams) -> tuple[ToolSpec, ...]:
    tools = params.tools or []
    names = {tool.name for tool in tools}
    fits = all(_VALID_NAME.fullmatch(tool.name) and tool.input_schema.get("type") == "object" for tool in tools)
    if len(tools) > MAX_SAMPLING_TOOLS or len(names) < len(tools) or not fits:
        raise _UnsupportedRequest
    return tuple(ToolSpec(tool.name, tool.description or "", tool.input_schema) for tool in tools)


def _parse_messages(params: CreateMessageRequestParams) -> list[_Entry]:
    """Return the contents. Each call must be answered in the next message, which may contain nothing else."""
    if len(params.messages) > MAX_SAMPLING_MESSAGES:
        raise _UnsupportedRequest
    entries: list[_Entry] = []
    open_calls: set[str] = set()
    for message in params.messages:
        contents = _message_content(message.content)
        result_ids = [content.tool_use_id for content in contents if isinstance(content, ToolResult)]
        call_ids = [content.id for content in contents if isinstance(content, ToolUse)]
        if sorted(result_ids) != sorted(open_calls) or (result_ids and len(result_ids) < len(contents)):
            raise _UnsupportedRequest
        if (result_ids and message.role != "user") or (call_ids and message.role != "assistant"):
            raise _UnsupportedRequest
        open_calls = set(call_ids)
        if len(open_calls) < len(call_ids):
            raise _UnsupportedRequest
        entries.extend((message.role, content) for content in contents)
    if open_calls:
        raise _UnsupportedRequest
    return entries


def _message_content(content: Any) -> list[SamplingContent]:
    """The text first, joined; then calls or results."""
    blocks = cast("list[Any]", content if isinstance(content, list) else [content])
    texts = [block.text for block in blocks if block.type == "text"]
    others = [_tool_content(block) for block in blocks if block.type != "text"]
    return [*(["\n".join(texts)] if texts or not others else []), *others]


def _tool_content(block: Any) -> SamplingContent:
    if block.type == "tool_use" and _VALID_NAME.fullmatch(block.name):
        return ToolUse(id=block.id, name=block.name, input=block.input)
    if block.type != "tool_result" or any(part.type != "text" for part in block.content):
        raise _UnsupportedRequest
    texts = [part.text for part in block.content]
    if not texts and block.structured_content is not None:
        texts = [json.dumps(block.structured_content, ensure_ascii=False)]
    outcome = Outcome.FAILED if block.is_error else Outcome.SUCCEEDED
    parts = tuple(Text(text=part) for part in texts)
    return ToolResult(tool_use_id=block.tool_use_id, content=parts, outcome=outcome)


Answer = TypeVar("Answer")

MAX_MESSAGE_LENGTH = 8_000
MAX_FORM_LENGTH = 50_000
MAX_URL_LENGTH = 8_000
# Questions that wait at once: a server that asks more is declined.
MAX_OPEN_QUESTIONS = 3
# Refusals in a row: after so many, a server is declined without asking until its calls have ended.
MAX_REFUSALS = 3


current_call: ContextVar[ServerCall | None] = ContextVar("current_call", default=None)
"""The call that a question of the server belongs to, if the protocol shows that. Older versions do not."""


class _AskingCalls:
    """The calls, oldest first, to one of which the server's question belongs."""

    def __init__(self, active: Sequence[ServerCall]) -> None:
        call = current_call.get()
        self._calls = active if call is None else tuple(candidate for candidate in active if candidate is call)

    @property
    def conversation_id(self) -> str | None:
        ids = {call.conversation_id for call in self._calls}
        return ids.pop() if len(ids) == 1 else None

    def are_at_work(self, active: Sequence[ServerCall]) -> bool:
        return any(call in active for call in self._calls)

    def count_usage(self, usage: Usage) -> None:
        """Report the usage of a model to the oldest of them that has a listener."""
        for call in self._calls:
            if call.on_usage is not None:
                call.on_usage(usage)
                return


class ServerRequestHandler:
    """Answers requests of one server. Questions to the person end with the last call that could have asked them.

    `handlers` is called for each question; `on_failure` with what the person should read.
    """

    def __init__(
        self,
        title: Callable[[], str],
        handlers: Callable[[], ServerRequestHandlers],
        workspace: Path | None,
        log: ServerLog,
        on_failure: Callable[[Sentence], None] = lambda _: None,
        may_open: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._title = title
        self._handlers = handlers
        self._workspace = workspace
        self._log = log
        self._on_failure = on_failure
        self._may_open = may_open
        # With the calls that can have asked.
        self._open_questions: dict[asyncio.Task[Any], _AskingCalls] = {}
        self._calls: tuple[ServerCall, ...] = ()
        self._refusals = 0

    @property
    def can_sample(self) -> bool:
        return self._handlers().sample is not None

    def set_active_calls(self, calls: Sequence[ServerCall]) -> None:
        """Set the calls that the server works on, oldest first. Questions that belong to none of them are withdrawn."""
        self._calls = tuple(calls)
        if not calls:
            self._refusals = 0
        for task, asking_calls in tuple(self._open_questions.items()):
            if not asking_calls.are_at_work(calls):
                task.cancel()

    def _may_ask(self, asking_calls: _AskingCalls) -> bool:
        """Return whether the person is asked at all: only during their own calls, and only so often."""
        return (
            asking_calls.are_at_work(self._calls)
            and len(self._open_questions) < MAX_OPEN_QUESTIONS
            and self._refusals < MAX_REFUSALS
        )

    async def roots(self, context: object) -> ListRootsResult:  # noqa: ARG002 - named by the library
        """Return the workspace, if there is one."""
        folder = self._workspace
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()), name=folder.name)] if folder else [])

    async def answer_elicitation(self, context: object, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG002 - named by the library
        """Ask the person; declined where nobody can be asked."""
        asking_calls = _AskingCalls(self._calls)
        elicit, request = self._handlers().elicit, self._elicitation_request(params, asking_calls.conversation_id)
        if elicit is None or request is None or not self._may_ask(asking_calls):
            return ElicitResult(action="decline")
        answer = await self._wait_for_answer(elicit(request), asking_calls) or ElicitationAnswer("cancel")
        self._count_refusals(agreed=answer.action == "accept")
        return ElicitResult(action=answer.action, content=answer.content if answer.action == "accept" else None)

    def _elicitation_request(
        self, params: ElicitRequestParams, conversation_id: str | None
    ) -> ElicitationRequest | None:
        """Return what the person is asked; None if it is too long or unusable: they must see all of it."""
        form: dict[str, Any] = getattr(params, "requested_schema", {})
        url: str | None = getattr(params, "url", None)
        if url is not None and (len(url) > MAX_URL_LENGTH or not url.lower().startswith(("https://", "http://"))):
            return None
        if len(params.message) > MAX_MESSAGE_LENGTH or len(json.dumps(form, default=str)) > MAX_FORM_LENGTH:
            return None
        may_open = url is None or self._may_open(url)
        return ElicitationRequest(self._title(), params.message, form, url, may_open, conversation_id)

    async def sample(
        self,
        context: object,  # noqa: ARG002 - named by the library
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """Let a model answer if the person agrees: text, and calls of the server's own tools."""
        refusal = ErrorData(code=INVALID_REQUEST, message="The person did not agree to this.")
        sample, asking_calls = self._handlers().sample, _AskingCalls(self._calls)
        if sample is None or not self._may_ask(asking_calls):
            return refusal
        request = parse_sampling_request(self._title(), params, asking_calls.conversation_id)
        if request is None:
            return ErrorData(code=INVALID_REQUEST, message="Only text is answered here, and not so much of it.")
        try:
            answer = await self._wait_for_answer(sample(request, asking_calls.count_usage), asking_calls)
        except AgentError as error:
            self._log.add(f"No model could answer the server: {error}", "error")
            template = "No model could answer the server “{server}”: {why}\n{remedy}"
            values = {"server": self._title(), "why": error.sentence, "remedy": error.remedy}
            self._on_failure(Sentence(template, values))
            return ErrorData(code=INTERNAL_ERROR, message="The model could not answer.")
        self._count_refusals(agreed=answer is not None)
        return refusal if answer is None else make_sampling_result(answer, with_tools=bool(request.tools))

    async def on_log_message(self, params: LoggingMessageNotificationParams) -> None:
        """Add a message of the server to its log."""
        data: Any = params.data
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self._log.add(f"{params.logger}: {text}" if params.logger else text, params.level)

    def _count_refusals(self, *, agreed: bool) -> None:
        self._refusals = 0 if agreed else self._refusals + 1

    async def _wait_for_answer(
        self, question: Coroutine[Any, Any, Answer] | Any, asking_calls: _AskingCalls
    ) -> Answer | None:
        """Return the answer; None where the question was withdrawn."""
        task: asyncio.Task[Answer] = asyncio.ensure_future(question)
        self._open_questions[task] = asking_calls
        try:
            await asyncio.wait([task])
        finally:
            del self._open_questions[task]
            task.cancel()
        return None if task.cancelled() else task.result()
