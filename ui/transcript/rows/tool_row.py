"""The row of a tool call: a card with its header, its arguments and its output."""

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from desktop_agent.conversation.file_changes import FileChange, file_changes
from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.types.blocks import Image, Json, Outcome, Text, ToolResult
from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import DENIED_BY_PERSON, DENIED_SAYING, EDITED_BY_PERSON
from ui.style.text import one_line, show_hidden, translate_sentence, truncate
from ui.style.tool_labels import tool_icon, tool_title
from ui.transcript.blocks.block import Block, MenuAction
from ui.transcript.blocks.buttons import Button, ButtonRowBlock, Header, HeaderBlock
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.highlighter_protocol import StyledWord
from ui.transcript.blocks.code.terminal_output import (
    OutputBlock,
    OutputTailBlock,
    Terminal,
    strip_commands,
    terminal_text,
)
from ui.transcript.blocks.text_block import CallSummaryBlock, TextBlock
from ui.transcript.rows.block_factory import MAX_SPOKEN
from ui.transcript.rows.call_arguments import (
    MAX_SUMMARY_LENGTH,
    arguments_json,
    arguments_summary,
    changes_summary,
    is_large,
    language_of_file,
    todos_summary,
    write_json,
)
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.rows.row import Row
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr

_MAX_NAME_LENGTH = 200
_ASK_TOOL = "ask_user"
_COMMAND_TOOL = "run_command"
_READ_TOOL = "read_file"

_TIME_SHOWN_AFTER = 2
"""Seconds after which the running time is shown."""


def call_header(call: ToolCallItem, since: float | None, *, unfolded: bool) -> Header:
    """Return the header; `since` is when the call was first seen running, on the monotonic clock."""
    if call.state is not CallState.ENDED:
        word, icon, color = _running_states()[CallState.WAITING if is_waiting_for_answer(call) else call.state]
        if since is not None and (passed := int(monotonic() - since)) >= _TIME_SHOWN_AFTER:
            word = tr("{0} · {1} s").format(word, passed)
    elif call.is_undone:
        # Not the icon of the button beside it.
        word, icon, color = tr("Undone"), "check", "muted"
    else:
        word, icon, color = _outcomes()[call.outcome or Outcome.UNKNOWN]
        if call.seconds is not None and call.seconds >= 0.95:
            word = tr("{0} · {1} s").format(word, f"{call.seconds:.0f}")
    return Header(
        one_line(tool_title(call.name), _MAX_NAME_LENGTH) or tr("tool"),
        icon=tool_icon(call.name),
        strong=True,
        color="text",
        state=word,
        state_icon=icon,
        state_color=color,
        is_open=unfolded,
        control=tr("Show details"),
        action=_undo_label(call),
        action_icon="undo" if call.can_be_undone else "redo",
    )


def is_waiting_for_answer(call: ToolCallItem) -> bool:
    """Return whether the running call only waits for the person's answer."""
    return call.state is CallState.RUNNING and call.name == _ASK_TOOL


def _undo_label(call: ToolCallItem) -> str:
    if call.can_be_undone:
        return tr("Undo")
    return tr("Redo") if call.can_be_redone else ""


# Word, icon and colour: many people cannot tell the state by its colour alone.
def _running_states() -> dict[CallState, tuple[str, str, str]]:
    return {
        CallState.WRITING: (tr("Writing"), "pencil", "muted"),
        CallState.PENDING: (tr("Pending"), "more", "muted"),
        CallState.WAITING: (tr("Waiting for you"), "eye", "warning"),
        CallState.RUNNING: (tr("Running"), "play", "accent"),
    }


def _outcomes() -> dict[Outcome, tuple[str, str, str]]:
    return {
        # Success is not highlighted.
        Outcome.SUCCEEDED: (tr("Done"), "check", "muted"),
        Outcome.FAILED: (tr("Failed"), "error", "danger"),
        Outcome.DENIED: (tr("Denied"), "close", "danger"),
        Outcome.CANCELLED: (tr("Cancelled"), "stop", "muted"),
        Outcome.TIMED_OUT: (tr("Timed out"), "warning", "warning"),
        Outcome.LIMIT: (tr("Limit reached"), "warning", "warning"),
        Outcome.UNKNOWN: (tr("Unknown"), "info", "warning"),
    }


_OUTPUT_LINES = 12
_LIVE_LINES = 400
_MAX_TAIL_COLUMNS = 400
"""Characters of a line that is shown while the card is folded."""

_MAX_STEP_LENGTH = 160
"""Characters of a line for a specialist's step."""

_FED_AT_ONCE = 16_000
"""Characters of output that are parsed in one frame; of more, the end."""

_LARGE_RESULT = 200_000
"""Characters of a result that is prepared in the worker."""


class ToolRow(Row):
    """A tool call, folded at first; its header unfolds it. A call that waits for approval is unfolded."""

    is_copied = False
    footer_gap = 14

    def __init__(self, item: ToolCallItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._call = item
        self._terminal = Terminal()
        self._fed_length = 0
        self._steps: list[str] = []
        self._live: tuple[int, OutputBlock | OutputTailBlock] | None = None
        self._since: float | None = None
        # Whether the person unfolded it and waits for the worker.
        self._is_pressed = False
        self._undo = partial(render_context.signals.undo_requested.emit, item.id)
        self._redo = partial(render_context.signals.redo_requested.emit, item.id)
        px, gap = render_context.style.px, render_context.style.gap
        self.stack.above, self.stack.below = gap(6) + px(8), gap(6) + px(10)
        self.stack.left = self.stack.right = px(14)

    @property
    def label(self) -> str:
        return tr("Tool call: {0}").format(one_line(tool_title(self._call.name), _MAX_NAME_LENGTH))

    @property
    def is_open(self) -> bool:
        return self._call.state is not CallState.ENDED

    def _is_unfolded_by_default(self) -> bool:
        return self._call.state is CallState.WAITING

    def build(self) -> None:
        self._live, self.is_preparing = None, False
        self._start_timer()
        head = call_header(self._call, self._since, unfolded=self.unfolded)
        self.add(HeaderBlock(head, self._toggle, self._undo if self._call.can_be_undone else self._redo))
        result = self._call.result.content if self._call.result else ()
        pictures = self.render_context.image_blocks([part for part in result if isinstance(part, Image)], self.item.id)
        for block in (*self._arguments(), *self._output(), *pictures):
            if isinstance(block, OutputBlock | OutputTailBlock) and not self._call.result:
                self._live = len(self.blocks), block
            self.add(block, 2 if isinstance(block, TextBlock) else 8, is_fixed=False)
        if self._call.state is CallState.WAITING and self._call.approval_id:
            review = partial(self.render_context.signals.approval_requested.emit, self._call.approval_id)
            self.add(ButtonRowBlock([Button(tr("Review"), review, primary=True)], head.title), 8, is_fixed=False)

    def refresh(self, what: str) -> int:
        """Show new output in its block; any other change makes the card anew."""
        if what != "text" or self._live is None or self._call.state is not CallState.RUNNING:
            return super().refresh(what)
        index, block = self._live
        block.set_output(*self._live_lines())
        return self.stack.block_top(index)

    def _start_timer(self) -> None:
        seconds = self.render_context.seconds
        if self._call.state is not CallState.RUNNING or is_waiting_for_answer(self._call):
            self._since = None
            seconds.starts.pop(self.item.id, None)
        elif self._since is None:
            self._since = seconds.starts.setdefault(self.item.id, monotonic())
            seconds.subscribe(self._on_second)

    def _on_second(self) -> bool:
        head = self.blocks[0] if self.blocks else None
        if self._since is None or not isinstance(head, HeaderBlock):
            return False
        head.set_header(call_header(self._call, self._since, unfolded=self.unfolded))
        if not head.is_laid_out:
            self.render_context.signals.content_arrived.emit(self.item.id)
        return True

    def actions(self) -> Sequence[MenuAction]:
        """Offer to undo or redo the call, where that is possible."""
        actions: list[MenuAction] = []
        if self._call.can_be_undone:
            actions.append(MenuAction(tr("Undo this call"), self._undo))
        if self._call.can_be_redone:
            actions.append(MenuAction(tr("Redo this call"), self._redo))
        return actions

    @property
    def _effective_arguments(self) -> dict[str, object]:
        edited = self._call.effective_input
        return self._call.input if edited is None else edited

    def _arguments(self) -> list[Block]:
        call = self._call
        if call.state is CallState.WRITING:
            newest = show_hidden(str(call.arguments)[-MAX_SUMMARY_LENGTH:])
            return [CallSummaryBlock(newest)] if newest else []
        arguments = self._effective_arguments
        if not self.unfolded:
            summary = self._summary(arguments)
            if call.effective_input is not None and summary:
                summary = tr("edited") + f" · {summary}"
            return [CallSummaryBlock(summary)] if summary else []
        if not is_large(arguments):
            return self._argument_blocks(arguments)
        make = partial(self._json_block, arguments)
        return [self._large_block("arguments", arguments, make) or CallSummaryBlock(tr("Preparing the arguments…"))]

    def _summary(self, arguments: dict[str, object]) -> str:
        """Return on one line what the call changes, or its arguments."""
        short = changes_summary(self._call, arguments) or todos_summary(self._call.name, arguments)
        return short or arguments_summary(arguments)

    def _argument_blocks(self, arguments: dict[str, object]) -> list[Block]:
        """Return the files that the call changes, or its command, and the other arguments as JSON."""
        if changes := file_changes(self._call.name, arguments, self._call.changed_lines):
            return [self._change_block(change) for change in changes]
        command = arguments.get("command") if self._call.name == _COMMAND_TOOL else None
        if not isinstance(command, str):
            return [self._json_block(arguments)] if arguments else []
        title = tr("command")
        block = CodeBlock(show_hidden(command), "sh", self._code_callbacks(title), title=title)
        others = {name: value for name, value in arguments.items() if name != "command"}
        return [block, self._json_block(others)] if others else [block]

    def _json_block(self, arguments: dict[str, object]) -> Block:
        title = tr("arguments")
        if self._call.effective_input is not None:
            title = tr("arguments, edited")
        return CodeBlock(arguments_json(arguments), "json", self._code_callbacks(title), title=title)

    def _change_block(self, change: FileChange) -> Block:
        title, language = one_line(change.path, _MAX_NAME_LENGTH), "diff" if change.is_diff else ""
        return CodeBlock(show_hidden(change.text), language, self._code_callbacks(title), title=title)

    def _output(self) -> list[Block]:
        """Return the steps of a specialist, which stay beside its answer, and the output."""
        call = self._call
        if not (call.steps and self.unfolded):
            return self._latest_output()
        title = tr("steps")
        steps = OutputBlock(*self._live_lines(), self._code_callbacks(title), title)
        return [steps, *(self._latest_output() if call.result else ())]

    def _latest_output(self) -> list[Block]:
        call = self._call
        if call.result is None:
            text, words = self._live_lines()
            if not text.strip():
                return []
            if not self.unfolded:
                return [OutputTailBlock(text, words)]
            title = tr("output")
            return [OutputBlock(text, words, self._code_callbacks(title), title)]
        if not self.unfolded and call.outcome is Outcome.SUCCEEDED:
            return []
        if _is_large_result(call.result):
            title = tr("result")
            whole = partial(_whole_block, call.result, self._code_callbacks(title), title)
            what, make = ("result", whole) if self.unfolded else ("tail", partial(_tail_block, call.result))
            return [self._large_block(what, call.result, make) or CallSummaryBlock(tr("Preparing the result…"))]
        text = _result_text(call.result).rstrip("\n")
        if not text.strip():
            return []
        return [self._result_block(text) if self.unfolded else OutputTailBlock(*_last_lines(text))]

    def _live_lines(self) -> tuple[str, list[list[StyledWord]]]:
        """Return the newest steps of a specialist, which has no output of its own, or lines of output."""
        steps = self._call.steps
        if steps:
            self._steps += map(_step_line, steps[len(self._steps) :])
            return "\n".join(self._steps[-(_LIVE_LINES if self.unfolded else _OUTPUT_LINES) :]), []
        output = str(self._call.output)
        self._terminal.feed(output[max(self._fed_length, len(output) - _FED_AT_ONCE) :])
        self._fed_length = len(output)
        if self.unfolded:
            return self._terminal.last_lines(_LIVE_LINES)
        return _cut_lines(*self._terminal.last_lines(_OUTPUT_LINES))

    def _large_block(self, what: str, source: object, make: Callable[[], Block]) -> Block | None:
        """Return a block that the worker makes; None until then."""
        block = self.render_context.large_block(self.item.id, what, source, make, self._on_large_block)
        self.is_preparing |= block is None
        return block

    def _on_large_block(self) -> None:
        was_pressed = self._is_pressed
        self.refresh("state")
        self._is_pressed = was_pressed and self.is_preparing
        # `changed` keeps what the person pressed under the pointer, however late it unfolds.
        notify = self.render_context.signals.changed if was_pressed else self.render_context.signals.content_arrived
        notify.emit(self.item.id)

    def _result_block(self, text: str) -> CodeBlock:
        """Return the whole result: of a file in its language, else as output of a terminal.

        Long output is parsed a moment later.
        """
        title = tr("result")
        if self._call.name == _READ_TOOL and self._call.outcome is Outcome.SUCCEEDED:
            language = language_of_file(self._effective_arguments)
            return CodeBlock(strip_commands(text), language, self._code_callbacks(title), title=title)
        if len(text) <= _FED_AT_ONCE:
            return OutputBlock(*terminal_text(text), self._code_callbacks(title), title)
        block = OutputBlock(strip_commands(text), [], self._code_callbacks(title), title)

        def arrived(output: tuple[str, list[list[StyledWord]]]) -> None:
            block.set_output(*output)
            if not block.is_laid_out:
                self.render_context.signals.content_arrived.emit(self.item.id)

        self.render_context.highlighter.job_queue.submit(("terminal", text), partial(terminal_text, text), arrived)
        return block

    def _code_callbacks(self, title: str) -> CodeCallbacks:
        return self.render_context.code_callbacks(self.item.id, f"wrap {title}")

    def _toggle(self) -> None:
        super()._toggle()
        self._is_pressed = self.is_preparing

    def paint_frame(self, painter: QPainter, style: RenderStyle) -> None:
        px, gap = style.px, style.gap
        box = QRectF(0.5, gap(6) + 0.5, self.stack.width - 1, self.body_bottom + px(10) - gap(6) - 1)
        waits = self._call.state is CallState.WAITING or is_waiting_for_answer(self._call)
        style.paint_box(painter, box, px(10), "surface", "warning" if waits else "border")

    def spoken_text(self) -> str:
        """Return name, state, what it changes or its arguments, and result; the beginning, when it is long."""
        head = call_header(self._call, self._since, unfolded=self.unfolded)
        result = _result_text(self._call.result, MAX_SPOKEN) if self._call.result else ""
        summary = self._summary(self._effective_arguments)
        if self._call.effective_input is not None and summary:
            summary = tr("arguments, edited") + f": {summary}"
        parts = [f"{head.title}, {head.state}", summary, result]
        return "\n".join(part for part in parts if part)


def _step_line(step: Sentence) -> str:
    return truncate(one_line(translate_sentence(step), _MAX_STEP_LENGTH + 1), _MAX_STEP_LENGTH)


def _result_text(result: ToolResult, max_length: int | None = None) -> str:
    parts: list[str] = []
    for part in result.content:
        if isinstance(part, Text):
            # What the runtime says about the person is at the beginning of the first text.
            parts.append((part.text if parts else _addressed_to_person(result, part.text))[:max_length])
        elif isinstance(part, Json):
            parts.append(write_json(part.value, max_length, indent=2))
    return "\n".join(parts)[:max_length]


def _addressed_to_person(result: ToolResult, text: str) -> str:
    """Return the text with the runtime's words about the person in their language, and addressed to them."""
    if result.outcome is Outcome.DENIED and text == DENIED_BY_PERSON:
        return tr("You denied this call.")
    if result.outcome is Outcome.DENIED and text.startswith(DENIED_SAYING):
        return tr("You denied this call and said: {0}").format(text.removeprefix(DENIED_SAYING))
    if result.ran_with is None or not text.startswith(EDITED_BY_PERSON):
        return text
    # The card itself shows the new arguments.
    words = tr("You changed the arguments of this call before it ran.")
    _, gap, answer = text.partition("\n\n")
    return f"{words}{gap}{answer}"


def _is_large_result(result: ToolResult) -> bool:
    texts = sum(len(part.text) for part in result.content if isinstance(part, Text))
    return texts > _LARGE_RESULT or any(is_large(part.value) for part in result.content if isinstance(part, Json))


def _whole_block(result: ToolResult, callbacks: CodeCallbacks, title: str) -> Block:
    return OutputBlock(*terminal_text(_result_text(result).rstrip("\n")), callbacks, title)


def _tail_block(result: ToolResult) -> Block:
    return OutputTailBlock(*_last_lines(_result_text(result).rstrip("\n")))


def _last_lines(text: str) -> tuple[str, list[list[StyledWord]]]:
    terminal = Terminal()
    terminal.feed(text[-_FED_AT_ONCE:])
    return _cut_lines(*terminal.last_lines(_OUTPUT_LINES))


def _cut_lines(text: str, words: list[list[StyledWord]]) -> tuple[str, list[list[StyledWord]]]:
    return "\n".join(line[:_MAX_TAIL_COLUMNS] for line in text.split("\n")), words
