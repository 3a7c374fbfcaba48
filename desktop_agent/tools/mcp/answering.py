"""What a server asks of us: the workspace, a person, a model. And what it reports."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from desktop_agent.tools.mcp.sampled import make_sampling_result, parse_sampling_request
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.vocabulary.errors import AgentError, Sentence
from desktop_agent.vocabulary.mcp.asking import (
    ElicitationAnswer,
    ElicitationRequest,
    ServerRequestHandlers,
    UsageListener,
)
from desktop_agent.vocabulary.usage import Usage

if TYPE_CHECKING:
    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        CreateMessageResultWithTools,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
        ListRootsResult,
        LoggingMessageNotificationParams,
    )

T = TypeVar("T")

MAX_MESSAGE_LENGTH = 8_000
MAX_FORM_LENGTH = 50_000
MAX_URL_LENGTH = 8_000
# Of questions that wait at once: a server that asks more is declined.
MAX_OPEN_QUESTIONS = 3
# Answered with no, or not at all, one after another: then it is declined without asking until its work is done.
MAX_REFUSALS = 3


def ignore_usage(_usage: Usage) -> None:
    """Of what belongs to no run."""


class ServerRequestHandler:
    """Answers one server. Questions to the person end with the last call that could have asked them.

    `people` is looked at for each question; `told` hears what the person should read.
    """

    def __init__(
        self,
        title: Callable[[], str],
        people: Callable[[], ServerRequestHandlers],
        workspace: Path | None,
        log: ServerLog,
        told: Callable[[Sentence], None] = lambda _: None,
        may_open: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._title = title
        self._handlers = people
        self._workspace = workspace
        self._log = log
        self._notify = told
        self._may_open = may_open
        self._open_questions: set[asyncio.Task[Any]] = set()
        self._calls = 0
        self._refusals = 0
        self._usage_listener: UsageListener = ignore_usage

    @property
    def can_sample(self) -> bool:
        """Whether a model may answer for the server, once the person agrees."""
        return self._handlers().sample is not None

    def set_active_calls(self, count: int, payer: UsageListener = ignore_usage) -> None:
        """It works on so many questions of ours. With the last one what the person was asked is taken back.

        `payer` is told what models use that answer it.
        """
        self._calls, self._usage_listener = count, payer
        if count == 0:
            self._refusals = 0
            for task in tuple(self._open_questions):
                task.cancel()

    @property
    def _may_ask(self) -> bool:
        """Whether the person is asked at all: only for what they had the server do, and not on and on."""
        return self._calls > 0 and len(self._open_questions) < MAX_OPEN_QUESTIONS and self._refusals < MAX_REFUSALS

    async def roots(self, context: object) -> "ListRootsResult":  # noqa: ARG002 - named by the library
        """The workspace, if there is one."""
        from mcp_types import ListRootsResult, Root
        from pydantic import FileUrl

        folder = self._workspace
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()), name=folder.name)] if folder else [])

    async def elicit(self, context: object, params: "ElicitRequestParams") -> "ElicitResult":  # noqa: ARG002 - named by the library
        """Ask the person; declined where nobody is there."""
        from mcp_types import ElicitResult

        answer = await self._ask_person(params)
        return ElicitResult(action=answer.action, content=answer.content if answer.action == "accept" else None)

    async def _ask_person(self, params: "ElicitRequestParams") -> ElicitationAnswer:
        elicit = self._handlers().elicit
        if elicit is None or not self._may_ask:
            return ElicitationAnswer("decline")
        form: dict[str, Any] = getattr(params, "requested_schema", {})
        url: str | None = getattr(params, "url", None)
        if url is not None and (len(url) > MAX_URL_LENGTH or not url.lower().startswith(("https://", "http://"))):
            return ElicitationAnswer("decline")
        if len(params.message) > MAX_MESSAGE_LENGTH or len(json.dumps(form, default=str)) > MAX_FORM_LENGTH:
            # Nobody is shown a part and asked about the whole.
            return ElicitationAnswer("decline")
        may_open = url is None or self._may_open(url)
        request = ElicitationRequest(self._title(), params.message, form, url, may_open)
        answer = await self._wait_for_answer(elicit(request)) or ElicitationAnswer("cancel")
        self._count_refusals(agreed=answer.action == "accept")
        return answer

    async def sample(
        self,
        context: object,  # noqa: ARG002 - named by the library
        params: "CreateMessageRequestParams",
    ) -> "CreateMessageResult | CreateMessageResultWithTools | ErrorData":
        """Let a model answer, where the person agrees; text alone, and calls of the server's own tools."""
        from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, ErrorData

        refused = ErrorData(code=INVALID_REQUEST, message="The person did not agree to this.")
        sample = self._handlers().sample
        if sample is None or not self._may_ask:
            return refused
        request = parse_sampling_request(self._title(), params)
        if request is None:
            return ErrorData(code=INVALID_REQUEST, message="Only text is answered here, and not so much of it.")
        try:
            answer = await self._wait_for_answer(sample(request, self._usage_listener))
        except AgentError as error:
            self._log.add(f"No model could answer the server: {error}", "error")
            template = "No model could answer the server “{server}”: {why}\n{remedy}"
            values = {"server": self._title(), "why": error.sentence, "remedy": error.remedy}
            self._notify(Sentence(template, values))
            return ErrorData(code=INTERNAL_ERROR, message="The model could not answer.")
        self._count_refusals(agreed=answer is not None)
        return refused if answer is None else make_sampling_result(answer, with_tools=bool(request.tools))

    async def on_log_message(self, params: "LoggingMessageNotificationParams") -> None:
        """Keep what the server reports."""
        data: Any = params.data
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self._log.add(f"{params.logger}: {text}" if params.logger else text, params.level)

    def _count_refusals(self, *, agreed: bool) -> None:
        self._refusals = 0 if agreed else self._refusals + 1

    async def _wait_for_answer(self, question: Coroutine[Any, Any, T] | Any) -> T | None:
        """What was answered; None where it was taken back."""
        task: asyncio.Task[T] = asyncio.ensure_future(question)
        self._open_questions.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._open_questions.discard(task)
            task.cancel()
        return None if task.cancelled() else task.result()
