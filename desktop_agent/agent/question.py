"""One question to the model and its answer, event by event; asked again where that is safe and may help."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from desktop_agent.agent.answer_size import AnswerSize
from desktop_agent.agent.hearing import validated_events
from desktop_agent.agent.pictures import PictureSupport
from desktop_agent.agent.request import BuiltRequest, RunSettings, build_request
from desktop_agent.agent.surroundings import RunContext
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.provider import Provider
from desktop_agent.vocabulary.engine_events import Event, RetryScheduled
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.messages import now
from desktop_agent.vocabulary.provider_events import MessageDelta, RequestAdjusted, StopReason, UsageUpdate

_MALFORMED_CALL = "The model wrote a call that its own server could not read."


class ModelCall:
    """Built afresh for each attempt; nothing is repeated once anything was said.

    `addenda` are added to the instructions of this turn.
    """

    def __init__(
        self, provider: Provider, context: RunContext, settings: RunSettings, addenda: Sequence[str] = ()
    ) -> None:
        self._provider = provider
        self._context = context
        self._recorder = context.recorder
        self._settings = settings
        self._addenda = addenda
        self._size = AnswerSize(settings.limits.answer_characters)

    @property
    def characters(self) -> int:
        """How much the answer holds in memory."""
        return self._size.characters

    async def run(self, answer: AnswerBuilder) -> None:
        """Fill the answer. Raises AgentError, and AnswerTooLong; what came before stays in it."""
        attempt = 1
        while True:
            try:
                if await self._attempt(answer, may_repeat=attempt == 1):
                    return
                delay, why = 0.0, _MALFORMED_CALL
                answer.restart()
            except AgentError as error:
                wait = None if answer.has_content else self._context.retry.delay(error, attempt)
                if wait is None:
                    raise
                delay, why = wait, str(error)
            self._recorder.emit(RetryScheduled(delay, why, attempt))
            await asyncio.sleep(delay)
            self._provider = await self._context.open_provider(self._settings.model)
            attempt += 1

    async def _attempt(self, answer: AnswerBuilder, *, may_repeat: bool) -> bool:
        """Ask once. False: nothing came but a call that its server could not read, so it is worth asking again."""
        built = await self._build_request()
        if built.adjustments:
            adjusted = RequestAdjusted(built.adjustments)
            self._size.add(adjusted)
            self._handle_event(adjusted, answer)
        events = validated_events(self._provider.stream(built.request), self._size, self._recorder.emit)
        async with aclosing(events):
            async for event in events:
                if may_repeat and _is_malformed_call(event) and not answer.has_content:
                    answer.feed(event, now())
                    async for rest in events:
                        # Not shown: it is the end of nothing. What it used counts all the same.
                        if isinstance(rest, UsageUpdate):
                            answer.feed(rest, now())
                    return False
                self._handle_event(event, answer)
        return True

    async def _build_request(self) -> BuiltRequest:
        context = self._context
        limits = self._provider.picture_limits(self._settings.model)
        sees = self._provider.model_info(self._settings.model).capabilities.images is not False
        pictures = PictureSupport(context.read_picture, context.fitter, limits, sees)
        history = self._recorder.history()
        specs = context.tools.specs()
        return await build_request(history, self._settings, specs, pictures, self._addenda, context.prepared_history)

    def _handle_event(self, event: Event, answer: AnswerBuilder) -> None:
        answer.feed(event, now())
        self._recorder.emit(event)


def _is_malformed_call(event: Event) -> bool:
    return isinstance(event, MessageDelta) and event.stop_reason is StopReason.MALFORMED_TOOL_CALL
