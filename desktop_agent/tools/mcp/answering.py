"""What a server asks of us: the workspace, a person, a model. And what it reports."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from desktop_agent.tools.mcp.sampled import request_of, result_of
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.vocabulary.errors import AgentError, Sentence
from desktop_agent.vocabulary.mcp.asking import (
    Answerers,
    ElicitationAnswer,
    ElicitationRequest,
    Spent,
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

LONGEST_WORDS = 8_000
LARGEST_FORM = 50_000
LONGEST_ADDRESS = 8_000
# Of questions that wait at once: a server that asks more is declined.
MOST_QUESTIONS = 3
# Answered with no, or not at all, one after another: then it is declined without asking until its work is done.
MOST_REFUSALS = 3


def unpaid(_usage: Usage) -> None:
    """Of what belongs to no run."""


class Answering:
    """Answers one server. Questions to the person end with the last call that could have asked them.

    `people` is looked at for each question; `told` hears what the person should read.
    """

    def __init__(
        self,
        title: Callable[[], str],
        people: Callable[[], Answerers],
        workspace: Path | None,
        log: ServerLog,
        told: Callable[[Sentence], None] = lambda _: None,
        may_open: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._title = title
        self._people = people
        self._workspace = workspace
        self._log = log
        self._told = told
        self._may_open = may_open
        self._asking: set[asyncio.Task[Any]] = set()
        self._calls = 0
        self._refusals = 0
        self._payer: Spent = unpaid

    @property
    def samples(self) -> bool:
        """Whether a model may answer for the server, once the person agrees."""
        return self._people().sample is not None

    def of_calls(self, count: int, payer: Spent = unpaid) -> None:
        """It works on so many questions of ours. With the last one what the person was asked is taken back.

        `payer` is told what models use that answer it.
        """
        self._calls, self._payer = count, payer
        if count == 0:
            self._refusals = 0
            for task in tuple(self._asking):
                task.cancel()

    @property
    def _may_ask(self) -> bool:
        """Whether the person is asked at all: only for what they had the server do, and not on and on."""
        return self._calls > 0 and len(self._asking) < MOST_QUESTIONS and self._refusals < MOST_REFUSALS

    async def roots(self, context: object) -> "ListRootsResult":  # noqa: ARG002 - named by the library
        """The workspace, if there is one."""
        from mcp_types import ListRootsResult, Root
        from pydantic import FileUrl

        folder = self._workspace
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()), name=folder.name)] if folder else [])

    async def elicit(self, context: object, params: "ElicitRequestParams") -> "ElicitResult":  # noqa: ARG002 - named by the library
        """Ask the person; declined where nobody is there."""
        from mcp_types import ElicitResult

        answer = await self._elicited(params)
        return ElicitResult(action=answer.action, content=answer.content if answer.action == "accept" else None)

    async def _elicited(self, params: "ElicitRequestParams") -> ElicitationAnswer:
        elicit = self._people().elicit
        if elicit is None or not self._may_ask:
            return ElicitationAnswer("decline")
        form: dict[str, Any] = getattr(params, "requested_schema", {})
        url: str | None = getattr(params, "url", None)
        if url is not None and (len(url) > LONGEST_ADDRESS or not url.lower().startswith(("https://", "http://"))):
            return ElicitationAnswer("decline")
        if len(params.message) > LONGEST_WORDS or len(json.dumps(form, default=str)) > LARGEST_FORM:
            # Nobody is shown a part and asked about the whole.
            return ElicitationAnswer("decline")
        may_open = url is None or self._may_open(url)
        request = ElicitationRequest(self._title(), params.message, form, url, may_open)
        answer = await self._asked(elicit(request)) or ElicitationAnswer("cancel")
        self._count(agreed=answer.action == "accept")
        return answer

    async def sample(
        self,
        context: object,  # noqa: ARG002 - named by the library
        params: "CreateMessageRequestParams",
    ) -> "CreateMessageResult | CreateMessageResultWithTools | ErrorData":
        """Let a model answer, where the person agrees; text alone, and calls of the server's own tools."""
        from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, ErrorData

        refused = ErrorData(code=INVALID_REQUEST, message="The person did not agree to this.")
        sample = self._people().sample
        if sample is None or not self._may_ask:
            return refused
        request = request_of(self._title(), params)
        if request is None:
            return ErrorData(code=INVALID_REQUEST, message="Only text is answered here, and not so much of it.")
        try:
            answer = await self._asked(sample(request, self._payer))
        except AgentError as error:
            self._log.add(f"No model could answer the server: {error}", "error")
            template = "No model could answer the server “{server}”: {why}\n{remedy}"
            values = {"server": self._title(), "why": error.sentence, "remedy": error.remedy}
            self._told(Sentence(template, values))
            return ErrorData(code=INTERNAL_ERROR, message="The model could not answer.")
        self._count(agreed=answer is not None)
        return refused if answer is None else result_of(answer, with_tools=bool(request.tools))

    async def logged(self, params: "LoggingMessageNotificationParams") -> None:
        """Keep what the server reports."""
        data: Any = params.data
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self._log.add(f"{params.logger}: {text}" if params.logger else text, params.level)

    def _count(self, *, agreed: bool) -> None:
        self._refusals = 0 if agreed else self._refusals + 1

    async def _asked(self, question: Coroutine[Any, Any, T] | Any) -> T | None:
        """What was answered; None where it was taken back."""
        task: asyncio.Task[T] = asyncio.ensure_future(question)
        self._asking.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._asking.discard(task)
            task.cancel()
        return None if task.cancelled() else task.result()
