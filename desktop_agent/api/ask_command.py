"""The headless command `ask`, which prints one answer, as text or JSON lines."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from desktop_agent.api.command_line import AskArguments
from desktop_agent.api.terminal import (
    BROKEN_PIPE,
    DONE,
    ERROR,
    INTERRUPTED,
    WRONG_USE,
    discard_output,
    escape_controls,
    use_utf8,
    write_remark,
)
from desktop_agent.conversation.picture_preparation import MAX_FILE_BYTES, import_picture_async
from desktop_agent.conversation.transcript_notices import explain_ending
from desktop_agent.engine.connections import key_from_environment
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.types.blocks import Block, Image, Text, ToolUse
from desktop_agent.types.dialects import API_KEY_VARIABLE
from desktop_agent.types.engine_events import (
    AnswerAwaited,
    ApprovalRequested,
    Envelope,
    ErrorOccurred,
    Event,
    LimitReached,
    RetryScheduled,
    RunEnd,
    RunFinished,
    ToolFinished,
    ToolResultsReceived,
)
from desktop_agent.types.errors import (
    AgentError,
    DatabaseReplaced,
    ImageRefused,
    KeyringLocked,
    KeyringMissing,
    SecretsUnavailable,
    Sentence,
    StorageFailed,
    WrittenElsewhere,
    WrongUse,
    join_remedy,
)
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import (
    TRUNCATED_STOP_REASONS,
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    RequestAdjusted,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    UsageUpdate,
)
from desktop_agent.types.providers import DEMO_ENDPOINT, DEMO_MODEL, ProviderConfig, Timeouts
from desktop_agent.types.tool_calls import AllowOnce


def event_to_json(event: Event) -> dict[str, Any] | None:
    """Return the object to print, or None for the engine's own events."""
    match event:
        case ErrorOccurred():
            return {"type": event.type, "kind": event.kind, "message": event.message}
        case ToolFinished():
            content = [part.model_dump(mode="json") for part in event.result.content]
            outcome = str(event.outcome)
            return {"type": "tool_result", "tool_use_id": event.id, "outcome": outcome, "content": content}
        case Image():
            return {"type": event.type, "source": event.source.model_dump(mode="json")}
        case _:
            return _provider_event_to_json(event)


def _provider_event_to_json(event: Event) -> dict[str, Any] | None:
    match event:
        case ContentDelta(phase=str(phase)):
            return {"type": event.type, "text": event.text, "phase": phase}
        case ContentDelta() | ThinkingDelta():
            return {"type": event.type, "text": event.text}
        case ThinkingBlock():
            # The family of servers behind the slash matters for replay only.
            provider = event.provider.partition("/")[0]
            return {"type": event.type, "text": event.text, "provider": provider, "metadata": event.metadata}
        case ToolUse(malformed=None):
            return {"type": event.type, "id": event.id, "name": event.name, "input": event.input}
        case MessageDelta():
            ending: dict[str, Any] = {"type": event.type, "stop_reason": str(event.stop_reason), "raw": event.raw}
            return ending if event.details is None else {**ending, "details": event.details}
        case UsageUpdate():
            return {"type": event.type, **event.usage.model_dump(exclude={"cost"})}
        case Done():
            return {"type": event.type}
        case _:
            return None


_PICTURE_MADE = (
    "The model made a picture. The conversation keeps it: open it in the window, or ask with --jsonl to get its bytes."
)
_NOT_APPROVED = "This call was denied: nobody is there to approve it, as ask was started with --approve never."
_NOT_STORED = (
    "What was printed is its only copy, and the conversation cannot be gone on with. Check the disk and its free "
    "space, or choose another folder with --data-dir, and ask again."
)
# The remedy of the errors, to keep the key in memory, does not help here: the program ends with its answer.
_KEYRING_REMEDY = Sentence(
    "Unlock the keyring and try again, or name the server with --dialect or --base-url and give its key in {variable}.",
    {"variable": API_KEY_VARIABLE},
)
_KEYRING_ERRORS = {kind.kind for kind in (SecretsUnavailable, KeyringMissing, KeyringLocked)}
_MAX_NAME_LENGTH = 100
_CUT = {*TRUNCATED_STOP_REASONS, StopReason.REFUSAL, StopReason.MALFORMED_TOOL_CALL}


def run_ask(arguments: AskArguments) -> int:
    """Ask and print; return the exit code. Standard streams are UTF-8, whatever the system's encoding is."""
    if arguments.verbose:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    # Models write lone surrogates; they must not end the answer.
    use_utf8()
    try:
        # Before the loop: a thread that waits for standard input, or for a pipe, could not be interrupted.
        data = sys.stdin.buffer.read() if arguments.prompt == "-" else os.fsencode(arguments.prompt)
        images = [(path.name, _read_image(path)) for path in arguments.images]
        # Bytes that are no UTF-8 cannot be sent to anybody.
        return asyncio.run(_ask(arguments, data.decode("utf-8", "replace"), images))
    except ImageRefused as error:
        return _report_failure(error)
    except KeyboardInterrupt:
        return INTERRUPTED


async def _ask(arguments: AskArguments, text: str, images: Sequence[tuple[str, bytes]]) -> int:
    try:
        engine = await Engine.open(arguments.launch.data_dir, _run_defaults(arguments))
    except AgentError as error:
        return _report_failure(error)
    engine.store.on_notice(lambda sentence: write_remark(str(sentence)))
    for notice in engine.notices:
        write_remark(str(notice))
    try:
        session = await _open_session(engine, arguments)
        message = await _build_prompt(engine, text, images)
        return await _AskRun(session, arguments, sys.stdout).run(message)
    except WrongUse as error:
        return _report_failure(error, WRONG_USE)
    except AgentError as error:
        return _report_failure(error)
    finally:
        await engine.close()


def _run_defaults(arguments: AskArguments) -> RunDefaults:
    limits = {"headers": arguments.headers_timeout, "first_event": arguments.first_event_timeout}
    config = ProviderConfig(
        system_prompt=arguments.system,
        max_tokens=arguments.max_tokens,
        reasoning=arguments.reasoning,
        # Timeouts that were not given come from the preferences.
        timeouts=Timeouts(**{name: seconds for name, seconds in limits.items() if seconds is not None}),
    )
    return RunDefaults(
        program="ask",
        endpoint=arguments.launch.endpoint,
        api_key=key_from_environment(API_KEY_VARIABLE),
        model=arguments.launch.model,
        toolset=arguments.tools,
        config=config,
    )


async def _open_session(engine: Engine, arguments: AskArguments) -> Session:
    workspace = str(await asyncio.to_thread(arguments.workspace.resolve)) if arguments.workspace else None
    launch = arguments.launch
    if arguments.continue_id:
        session = await engine.session(arguments.continue_id)
        if launch.demo:
            await engine.connections.start_demo()
            session.change_record(endpoint_id=DEMO_ENDPOINT, model=DEMO_MODEL)
        if launch.endpoint is not None:
            session.change_record(endpoint_id=launch.endpoint.id)
        if launch.model is not None:
            session.change_record(model=launch.model)
        if workspace is not None:
            session.change_record(workspace=workspace)
    elif launch.demo:
        session = await engine.new_demo_session()
        if workspace:
            session.change_record(workspace=workspace)
    else:
        session = engine.new_session(workspace=workspace)
    if session.record.endpoint_id and not session.record.model:
        session.change_record(model=await _only_model(engine, session.record.endpoint_id))
    return session


async def _only_model(engine: Engine, endpoint_id: str) -> str:
    """Return the only model of a server. Raises WrongUse where it has none or several."""
    models = await engine.connections.models(endpoint_id)
    if len(models) == 1:
        return models[0].id
    names = ", ".join(model.id[:_MAX_NAME_LENGTH] for model in models[:20]) or "none"
    raise WrongUse(f"Choose a model with --model. The server has: {names}.")


async def _build_prompt(engine: Engine, text: str, images: Sequence[tuple[str, bytes]]) -> Message:
    blocks: list[Block] = [Text(text=text)]
    for name, data in images:
        picture = await import_picture_async(data, name)
        source = await engine.pictures.put(picture.data, picture.media_type, picture.width, picture.height)
        blocks.append(Image(source=source, name=name))
    return Message.user_with_blocks(blocks)


def _read_image(path: Path) -> bytes:
    """Read a file, a pipe or a device, at most one byte more than a picture may have. Raises ImageRefused."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ImageRefused.not_read(str(path), error) from None
    if data.startswith(b"%PDF-"):
        what = Sentence("“{path}” is a PDF, not a picture.", {"path": str(path)})
        raise ImageRefused(what, "Give its folder with --workspace, and name the file in the prompt.")
    return data


class _AskRun:
    """Prints the events of one run and decides its approvals."""

    def __init__(self, session: Session, arguments: AskArguments, out: TextIO) -> None:
        self._session = session
        self._arguments = arguments
        self._out = out
        self._end: RunEnd | None = None
        self._error: ErrorOccurred | None = None
        self._is_output_closed = False
        self._reported: set[str] = set()
        self._has_failed = False
        self._is_waiting = False
        self._storage_failure: StorageFailed | None = None
        self._has_reader = True
        self._has_answer = False
        self._is_in_line = False
        """Whether the text that was printed last did not end its line."""
        self._had_results = False
        """Whether calls were answered since then: what the model says next is another text."""
        self._is_cut = False
        """Whether the last answer was cut, or refused."""
        self._stopping: asyncio.Task[None] | None = None

    async def run(self, message: Message) -> int:
        self._session.subscribe(on_event=self._on_event)
        restore = _install_signal_handlers(self._stop)
        try:
            self._session.send(message)
            await self._session.wait_idle()
            if self._stopping is not None:
                await self._stopping
            await self._store()
        finally:
            restore()
        if not self._arguments.jsonl:
            self._print("\n")
        write_remark(f"conversation {self._session.record.id}")
        if count := len(self._session.queue.entries):
            write_remark(f"{count} messages still wait in it." if count > 1 else "One message still waits in it.")
        if self._storage_failure is not None:
            write_remark(f"The answer was not stored: {self._storage_failure.sentence} {_NOT_STORED}")
        if self._error is not None:
            write_remark(_error_text(self._error))
        return self._exit_code

    @property
    def _exit_code(self) -> int:
        if self._error is not None and self._error.kind == WrongUse.kind:
            return WRONG_USE
        if not self._has_reader:
            return BROKEN_PIPE
        if self._has_failed or self._storage_failure is not None:
            return ERROR
        if self._error is not None and self._error.kind in {WrittenElsewhere.kind, DatabaseReplaced.kind}:
            return ERROR
        if self._end is RunEnd.COMPLETED and (self._is_cut or not self._has_answer):
            return ERROR
        return {RunEnd.COMPLETED: DONE, RunEnd.CANCELLED: INTERRUPTED}.get(self._end or RunEnd.FAILED, ERROR)

    def _stop(self) -> None:
        """Stop the run; messages that wait in the conversation stay there."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._session.close())

    async def _store(self) -> None:
        with suppress(StorageFailed):
            await self._session.flush()
        # Not the error of `flush`: that may have been reported already, in the middle of the run.
        unsaved = self._session.unsaved
        # WrittenElsewhere was reported by an event.
        if unsaved is not None and not isinstance(unsaved.reason, WrittenElsewhere):
            self._storage_failure = unsaved.reason

    def _on_event(self, envelope: Envelope) -> None:
        event = envelope.event
        if self._is_waiting:
            self._is_waiting = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        if isinstance(event, ApprovalRequested):
            # Not within this event: all listeners must first get it.
            asyncio.get_running_loop().call_soon(self._decide, event.approval_id)
        if envelope.parent_run_id is not None:
            # A specialist answers the agent that called it.
            return
        # A reader of JSON lines gets the call, and may run it.
        is_printed = isinstance(event, ContentDelta) or (self._arguments.jsonl and isinstance(event, ToolUse))
        self._has_answer |= is_printed or isinstance(event, Image)
        if self._arguments.jsonl:
            # Without tools nothing ran: the refusals are only in the history, so that it can be continued.
            refused = isinstance(event, ToolFinished) and self._arguments.tools == "none"
            line = None if refused else event_to_json(event)
            if line is not None:
                self._print(_json_line(line) + "\n")
        elif isinstance(event, ContentDelta):
            self._print_text(event.text)
        elif isinstance(event, Image):
            write_remark(_PICTURE_MADE)
        self._had_results |= isinstance(event, ToolResultsReceived)
        self._report_event(event)

    def _print_text(self, text: str) -> None:
        if self._had_results and self._is_in_line and text:
            self._print("\n")
        # A terminal obeys controls; what reads from a pipe or a file gets the answer as it is.
        self._print(escape_controls(text) if self._out.isatty() else text)
        if text:
            self._is_in_line, self._had_results = not text.endswith("\n"), False

    def _report_event(self, event: Event) -> None:
        """Write what a person wants to know besides the answer to standard error."""
        match event:
            case ErrorOccurred():
                self._error = event
            case AnswerStarted() | RequestAdjusted():
                self._report_once(event.adjustments)
            case MessageDelta():
                self._report_ending(event)
            case ToolUse(malformed=str()):
                # With tools the model is told and may call again; without tools nobody would know.
                self._has_failed |= self._arguments.tools == "none"
                write_remark(f"A call of “{event.name[:_MAX_NAME_LENGTH]}” could not be read. It was not run.")
            case ToolUse() if self._arguments.tools == "none":
                name = event.name[:_MAX_NAME_LENGTH]
                write_remark(f"The model called “{name}”, but no tools run here (--tools none). It was not run.")
            case AnswerAwaited() if sys.stderr.isatty():
                # One line that counts up; the next event clears it.
                self._is_waiting = True
                sys.stderr.write(f"No answer yet, {event.seconds:.0f} s.")
                sys.stderr.flush()
            case RetryScheduled():
                retry = Sentence("Trying again in {seconds} s.", {"seconds": f"{event.after:.1f}"})
                write_remark(str(join_remedy(Sentence("{why}", {"why": event.why}), retry)))
            case LimitReached():
                write_remark(f"A limit was reached: {event.which}.")
            case RunFinished():
                self._end = event.reason
            case _:
                pass

    def _report_once(self, sentences: tuple[Sentence, ...]) -> None:
        for text in map(str, sentences):
            if text not in self._reported:
                self._reported.add(text)
                write_remark(text)

    def _report_ending(self, end: MessageDelta) -> None:
        self._is_cut = end.stop_reason in _CUT
        explanation = explain_ending(end.stop_reason, end.details, end.raw)
        if explanation is not None:
            write_remark(
                " ".join(
                    str(sentence) for sentence in (explanation.sentence, explanation.remedy) if sentence is not None
                )
            )

    def _decide(self, approval_id: str) -> None:
        if self._arguments.approve == "always":
            self._session.approvals.answer(approval_id, AllowOnce())
        else:
            # Not as an answer: the model would be told that a person denied the call.
            self._session.approvals.resolve_by_rule(approval_id, allow=False, why=_NOT_APPROVED)

    def _print(self, text: str) -> None:
        if self._is_output_closed:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except OSError as error:
            # The reader has gone, or the disk is full: the same as Ctrl+C.
            self._is_output_closed = True
            discard_output(self._out)
            if isinstance(error, BrokenPipeError):
                self._has_reader = False
            else:
                self._has_failed = True
                write_remark(f"The answer cannot be written: {error.strerror}.")
            self._stop()


def _json_line(line: dict[str, Any]) -> str:
    """Return one line in ASCII: some readers end a line at U+2028 too, and models write lone surrogates."""
    return json.dumps(line, separators=(",", ":"))


def _install_signal_handlers(stop: Callable[[], object]) -> Callable[[], None]:
    """Let SIGINT and SIGTERM stop like the Stop button; return a function that undoes this."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, stop)
        loop.add_signal_handler(signal.SIGTERM, stop)
    except NotImplementedError:  # Windows has no signal handlers in the loop
        return _install_signal_handlers_on_windows(loop, stop)

    def restore() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)

    return restore


def _install_signal_handlers_on_windows(
    loop: asyncio.AbstractEventLoop, stop: Callable[[], object]
) -> Callable[[], None]:
    def on_signal(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    previous = signal.signal(signal.SIGINT, on_signal)

    def restore() -> None:
        signal.signal(signal.SIGINT, previous)

    return restore


def _report_failure(error: AgentError, code: int = ERROR) -> int:
    write_remark(_error_text(error))
    return code


def _error_text(error: AgentError | ErrorOccurred) -> str:
    remedy = _KEYRING_REMEDY if error.kind in _KEYRING_ERRORS else error.remedy
    return str(join_remedy(error.sentence, remedy))
