"""A provider that plays a script, for tests without a server."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import AgentError, CachingNotSupported
from desktop_agent.types.messages import now
from desktop_agent.types.provider_events import Done, MessageDelta, ProviderEvent, StopReason, UsageUpdate
from desktop_agent.types.providers import CachedPrompt, ImageLimits, ModelInfo, ModelRequest, ProviderState, TokenCount


class ScriptBroken(AgentError, AssertionError):
    """A request does not fit the script. Also an AssertionError, so that test runners show it as a failure."""

    kind = "script"
    default_remedy = "Correct the script or the code that asks."


@dataclass(frozen=True, slots=True)
class Expect:
    """A check of the request before any event of its turn. `check` returns whether the request is as expected."""

    what: str
    check: Callable[[ModelRequest], bool]


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause until `until` is set. `reached` is set when the script arrives here, for a test that waits for it."""

    until: asyncio.Event
    reached: asyncio.Event | None = None


Step = ProviderEvent | Expect | Wait | AgentError


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer. A missing ending is added: MessageDelta, for tool use if there are calls, and Done."""

    steps: tuple[Step, ...]

    def __init__(self, *steps: Step) -> None:
        object.__setattr__(self, "steps", steps)


class ScriptedProvider:
    """Plays one `Turn` for each request, in order. Keeps the requests in `requests` and counts early closings."""

    def __init__(self, *turns: Turn, models: tuple[ModelInfo, ...] = (), pictures: ImageLimits | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self.closed_early = 0
        self.complaints: list[ScriptBroken] = []
        self._turns = list(turns)
        self._models = models
        self._pictures = pictures or ImageLimits()
        self._state = ProviderState()

    @property
    def dialect(self) -> str:
        return "scripted"

    @property
    def state(self) -> ProviderState:
        return self._state

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Play the next turn. Raises ScriptBroken, or the error in the script."""
        self.requests.append(request)
        self._state.request_count += 1
        self._state.last_request_time = now()
        if not self._turns:
            raise self._script_error(f"Request {len(self.requests)} was not foreseen; the script is at its end.")
        turn = self._turns.pop(0)
        finished = False
        events = self._play_turn(turn, request)
        try:
            async for event in events:
                # A caller that stops reading after Done has the whole answer.
                finished = isinstance(event, Done)
                yield event
            finished = True
        except AgentError:
            finished = True
            raise
        finally:
            await events.aclose()
            self.closed_early += not finished

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the models from the constructor."""
        return self._models

    def model_info(self, model: str) -> ModelInfo:
        """Return the model from the constructor, or one with only its name."""
        return next((info for info in self._models if info.id == model), ModelInfo(model))

    def picture_limits(self, model: str) -> ImageLimits:
        """Return the limits from the constructor; without any, every picture may be sent."""
        return self._pictures

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Count four characters as a token, exactly."""
        return TokenCount(sum(len(message.text) for message in request.messages) // 4)

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Raise CachingNotSupported."""
        raise CachingNotSupported("A script has no prompt cache.")

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""

    def assert_finished(self) -> None:
        """Raise ScriptBroken if turns remain, or again if it was raised before: the program may have caught it."""
        if self.complaints:
            raise self.complaints[0]
        if self._turns:
            raise ScriptBroken(f"{len(self._turns)} turns of the script were never asked for.")

    async def _play_turn(self, turn: Turn, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        calls = 0
        ended = False
        for step in turn.steps:
            match step:
                case Expect():
                    if not step.check(request):
                        raise self._script_error(f"Request {len(self.requests)} is not as expected: {step.what}.")
                case Wait():
                    if step.reached is not None:
                        step.reached.set()
                    await step.until.wait()
                case AgentError():
                    raise step
                case _:
                    calls += isinstance(step, ToolUse)
                    ended = ended or isinstance(step, Done)
                    yield self._add_to_totals(step)
        if not ended:
            if not any(isinstance(step, MessageDelta) for step in turn.steps):
                yield MessageDelta(StopReason.TOOL_USE if calls else StopReason.END_TURN)
            yield self._add_to_totals(Done())

    def _add_to_totals(self, event: ProviderEvent) -> ProviderEvent:
        if isinstance(event, Done):
            self._state.conversation_turns += 1
        elif isinstance(event, UsageUpdate):
            self._state.input_tokens += event.usage.input_tokens or 0
            self._state.output_tokens += event.usage.output_tokens or 0
            self._state.cached_tokens += event.usage.cache_read_tokens or 0
        return event

    def _script_error(self, message: str) -> ScriptBroken:
        complaint = ScriptBroken(message)
        self.complaints.append(complaint)
        return complaint
