"""One question to the model and its answer, event by event; asked again where that is safe and may help."""

import asyncio
from time import monotonic

from desktop_agent.agent.pictures import Pictures
from desktop_agent.agent.request import BuiltRequest, RequestSettings, build_request
from desktop_agent.agent.surroundings import Surroundings
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.provider import Provider
from desktop_agent.vocabulary.engine_events import Event, RequestAdjusted, RetryScheduled
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.messages import now
from desktop_agent.vocabulary.provider_events import MessageDelta, StopReason

# A flood of events is taken in slices of this many seconds; longer ones where the others take long themselves.
SLICE = 0.008
LONGEST_SLICE = 0.05
_MISWRITTEN = "The model wrote a call that its own server could not read."


class Question:
    """Built afresh for each attempt; nothing is repeated once anything was said."""

    def __init__(self, provider: Provider, around: Surroundings, settings: RequestSettings) -> None:
        self._provider = provider
        self._around = around
        self._recorder = around.recorder
        self._settings = settings

    async def ask(self, answer: AnswerBuilder) -> None:
        """Fill the answer. Raises AgentError; what came before stays in it."""
        attempt = 1
        while True:
            try:
                if await self._answered(answer, may_repeat=attempt == 1):
                    return
                delay, why = 0.0, _MISWRITTEN
                answer.begin_again()
            except AgentError as error:
                wait = None if answer.has_content else self._around.retry.delay(error, attempt)
                if wait is None:
                    raise
                delay, why = wait, str(error)
            self._recorder.emit(RetryScheduled(delay, why, attempt))
            await asyncio.sleep(delay)
            attempt += 1

    async def _answered(self, answer: AnswerBuilder, *, may_repeat: bool) -> bool:
        """Ask once. False: nothing came but a call that its server could not read, so it is worth asking again."""
        built = await self._built()
        if built.adjustments:
            self._take(RequestAdjusted(built.adjustments), answer)
        events = self._provider.stream(built.request)
        pause_at = monotonic() + SLICE
        try:
            async for event in events:
                if may_repeat and _is_miswritten(event) and not answer.has_content:
                    answer.feed(event, now())
                    async for rest in events:
                        # Not shown: it is the end of nothing. What it used counts all the same.
                        answer.feed(rest, now())
                    return False
                self._take(event, answer)
                if monotonic() > pause_at:
                    # What has piled up comes without any waiting; the screen and Stop must have their turn.
                    paused_at = monotonic()
                    await asyncio.sleep(0)
                    pause_at = monotonic() + min(max(SLICE, monotonic() - paused_at), LONGEST_SLICE)
        finally:
            await events.aclose()
        return True

    async def _built(self) -> BuiltRequest:
        around = self._around
        limits = self._provider.picture_limits(self._settings.model)
        sees = self._provider.model_info(self._settings.model).capabilities.images is not False
        pictures = Pictures(around.read_picture, around.fitter, limits, sees)
        return await build_request(self._recorder.history(), self._settings, around.tools.specs(), pictures)

    def _take(self, event: Event, answer: AnswerBuilder) -> None:
        answer.feed(event, now())
        self._recorder.emit(event)


def _is_miswritten(event: Event) -> bool:
    return isinstance(event, MessageDelta) and event.stop_reason is StopReason.MALFORMED_TOOL_CALL
