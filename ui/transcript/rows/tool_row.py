"""A tool call as a card: what, how it stands, with what arguments, and what came of it."""

import json
from functools import partial
from time import monotonic
from weakref import WeakKeyDictionary

from PySide6.QtCore import QCoreApplication, QRectF
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.vocabulary.blocks import Image, Json, Outcome, Text
from ui.look.visible_text import hidden_written, with_hidden_shown
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.buttons import Button, ButtonsBlock
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.code.host import CodeHost
from ui.transcript.blocks.code.output import OutputBlock, TailBlock
from ui.transcript.blocks.code.terminal import Terminal, shown, without_commands
from ui.transcript.blocks.colouring.coloured import Word
from ui.transcript.blocks.head_block import Head, HeadBlock
from ui.transcript.blocks.text_block import SMALL, TextBlock
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import Seconds, Stage

_LONGEST_SHORT = 110
_LONGEST_NAME = 200
_OUTPUT_LINES = 12
_LIVE_LINES = 400
_WIDEST = 400
"""Characters of a line that is shown while the card is folded."""

_AT_ONCE = 16_000
"""Characters of output that are read in one frame; of a flood, its end."""

_SOON = 2
"""Seconds after which the time is shown."""

_STARTS: WeakKeyDictionary[Seconds, dict[str, float]] = WeakKeyDictionary()
"""When calls that run were first seen to do so, by their ids: their rows are made anew with each zoom."""


class ToolRow(Row):
    """Short at first; its head opens it. A call that waits for the person is open and offers Review."""

    in_copies = False

    def __init__(self, item: ToolCallItem, stage: Stage) -> None:
        super().__init__(item, stage)
        self._call = item
        self._terminal = Terminal()
        self._fed = 0
        self._live: tuple[int, OutputBlock | TailBlock] | None = None
        self._since: float | None = None
        px, gap = stage.look.px, stage.look.gap
        self.above, self.below = gap(6) + px(8), gap(6) + px(10)
        self.left = self.right = px(14)

    @property
    def label(self) -> str:
        """The accessible name."""
        return QCoreApplication.translate("Transcript", "Tool call: {0}").format(_one_line(self._call.name))

    @property
    def is_open(self) -> bool:
        """Until it has a result."""
        return self._call.state is not CallState.ENDED

    @property
    def unfolded(self) -> bool:
        """Whether all is seen."""
        return self.stage.choices.get(self.item.id, "unfolded", default=self._call.state is CallState.WAITING)

    def build(self) -> None:
        """Everything anew: a card is small."""
        self._live = None
        self._watch_time()
        blocks: list[Block] = [HeadBlock(self._head(), self._toggle)]
        blocks += self._arguments()
        blocks += self._output()
        for index, block in enumerate(blocks):
            if isinstance(block, OutputBlock | TailBlock) and not self._call.result:
                self._live = index, block
        blocks += self._pictures()
        if self._call.state is CallState.WAITING and self._call.approval_id:
            review = partial(self.stage.facts.approval_requested.emit, self._call.approval_id)
            words = QCoreApplication.translate("Transcript", "Review")
            blocks.append(ButtonsBlock([Button(words, review, primary=True)]))
        for index, block in enumerate(blocks):
            block.gap = self.stage.look.gap(2 if isinstance(block, TextBlock) else 8)
            self.put(index, block)

    def refresh(self, what: str) -> int:
        """New output changes the block that shows it; anything else makes the card anew."""
        if what != "text" or self._live is None or self._call.state is not CallState.RUNNING:
            return super().refresh(what)
        index, block = self._live
        block.show(*self._live_lines())
        return self.block_top(index)

    def _watch_time(self) -> None:
        seconds = self.stage.seconds
        starts = _STARTS.setdefault(seconds, {}) if seconds else dict[str, float]()
        if self._call.state is not CallState.RUNNING:
            self._since = None
            starts.pop(self.item.id, None)
        elif self._since is None:
            self._since = starts.setdefault(self.item.id, monotonic())
            if seconds:
                seconds.tell(self._on_second)

    def _on_second(self) -> bool:
        """Answers whether it wants to hear of the next one."""
        head = self.blocks[0] if self.blocks else None
        if self._since is None or not isinstance(head, HeadBlock):
            return False
        head.show(self._head())
        if not head.laid:
            self.stage.facts.arrived.emit(self.item.id)
        return True

    def _head(self) -> Head:
        call = self._call
        if call.state is not CallState.ENDED:
            word, icon, color = _running_states()[call.state]
            if self._since is not None and (passed := int(monotonic() - self._since)) >= _SOON:
                word = QCoreApplication.translate("Transcript", "{0} · {1} s").format(word, passed)
        else:
            word, icon, color = _outcomes()[call.outcome or Outcome.UNKNOWN]
            if call.seconds is not None and call.seconds >= 0.95:
                word = QCoreApplication.translate("Transcript", "{0} · {1} s").format(word, f"{call.seconds:.0f}")
        return Head(
            _one_line(call.name) or QCoreApplication.translate("Transcript", "tool"),
            icon="tool",
            strong=True,
            color="text",
            state=word,
            state_icon=icon,
            state_color=color,
            is_open=self.unfolded,
            control=QCoreApplication.translate("Transcript", "Show details"),
        )

    def _arguments(self) -> list[Block]:
        call = self._call
        if call.state is CallState.WRITING:
            return [_small(with_hidden_shown(str(call.arguments)[-_LONGEST_SHORT:]))] if call.arguments.length else []
        given = call.input if call.effective_input is None else call.effective_input
        if not self.unfolded:
            return [_small(short)] if (short := _short(given)) else []
        title = QCoreApplication.translate("Transcript", "arguments")
        if call.effective_input is not None:
            title = QCoreApplication.translate("Transcript", "arguments, edited")
        return [CodeBlock(_as_json(given), "json", self._host(title), title=title)] if given else []

    def _output(self) -> list[Block]:
        """What a specialist did stays beside what it answered."""
        call = self._call
        if not (call.delegated and call.output.length and self.unfolded):
            return self._newest()
        title = QCoreApplication.translate("Transcript", "steps")
        steps = OutputBlock(*self._live_lines(), self._host(title), title)
        return [steps, *(self._newest() if call.result else ())]

    def _newest(self) -> list[Block]:
        call = self._call
        if call.result is None:
            text, words = self._live_lines()
            title = QCoreApplication.translate("Transcript", "output")
            if not text.strip():
                return []
            return [OutputBlock(text, words, self._host(title), title) if self.unfolded else TailBlock(text, words)]
        text = self._result_text().rstrip("\n")
        if not text.strip():
            return []
        if self.unfolded:
            return [self._result_block(text)]
        return [] if call.outcome is Outcome.SUCCEEDED else [TailBlock(*_tail(text))]

    def _live_lines(self) -> tuple[str, list[list[Word]]]:
        """The last lines of what came so far."""
        output = str(self._call.output)
        self._terminal.feed(output[max(self._fed, len(output) - _AT_ONCE) :])
        self._fed = len(output)
        if self.unfolded:
            return self._terminal.last(_LIVE_LINES)
        return _narrow(*self._terminal.last(_OUTPUT_LINES))

    def _result_block(self, text: str) -> OutputBlock:
        """All of it; a long one gets its colours, and what its program wrote over, a moment later."""
        title = QCoreApplication.translate("Transcript", "result")
        if len(text) <= _AT_ONCE:
            return OutputBlock(*shown(text), self._host(title), title)
        block = OutputBlock(without_commands(text), [], self._host(title), title)

        def arrived(found: tuple[str, list[list[Word]]]) -> None:
            block.show(*found)
            if not block.laid:
                self.stage.facts.arrived.emit(self.item.id)

        self.stage.highlighter.elsewhere(("terminal", text), partial(shown, text), arrived)
        return block

    def _pictures(self) -> list[Block]:
        result = self._call.result
        images = [part for part in result.content if isinstance(part, Image)] if result else []
        return self.stage.image_blocks(images, self.item.id)

    def _result_text(self) -> str:
        result = self._call.result
        parts: list[str] = []
        for part in result.content if result else ():
            if isinstance(part, Text):
                parts.append(part.text)
            elif isinstance(part, Json):
                parts.append(json.dumps(part.value, ensure_ascii=False, indent=2))
        return "\n".join(parts)

    def _host(self, title: str) -> CodeHost:
        return self.stage.code_host(self.item.id, f"wrap {title}")

    def _toggle(self) -> None:
        self.stage.choices.set(self.item.id, "unfolded", value=not self.unfolded)
        self.refresh("state")
        self.stage.facts.changed.emit(self.item.id)

    def paint_frame(self, painter: QPainter, look: Look) -> None:
        """The card."""
        px, gap = look.px, look.gap
        box = QRectF(0.5, gap(6) + 0.5, self.width - 1, self.height - 2 * gap(6) - 1)
        painter.setPen(look.color("warning" if self._call.state is CallState.WAITING else "border"))
        painter.setBrush(look.color("surface"))
        painter.drawRoundedRect(box, px(10), px(10))

    def spoken(self) -> str:
        """Name, state, arguments and result."""
        head = self._head()
        parts = [f"{head.title}, {head.state}", _short(self._call.input), self._result_text()]
        return "\n".join(part for part in parts if part)


def _tail(text: str) -> tuple[str, list[list[Word]]]:
    """The last lines of a whole output."""
    terminal = Terminal()
    terminal.feed(text[-_AT_ONCE:])
    return _narrow(*terminal.last(_OUTPUT_LINES))


def _narrow(text: str, words: list[list[Word]]) -> tuple[str, list[list[Word]]]:
    return "\n".join(line[:_WIDEST] for line in text.split("\n")), words


def _small(text: str) -> TextBlock:
    return TextBlock(Line(text), SMALL, "muted")


def _short(arguments: dict[str, object]) -> str:
    """One line: the values that tell most, cut when long."""
    parts = [
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    ]
    line = " ".join(with_hidden_shown(" · ".join(parts)[: _LONGEST_SHORT * 3]).split())
    return line if len(line) <= _LONGEST_SHORT else line[: _LONGEST_SHORT - 1] + "…"


def _as_json(arguments: dict[str, object]) -> str:
    """Pretty, with hidden characters as escapes: what is copied from it is still the arguments."""
    plain = json.dumps(arguments, ensure_ascii=False, indent=2)
    return hidden_written(plain, lambda character: json.dumps(character)[1:-1])


def _one_line(name: str) -> str:
    """A name from a model: control characters seen, not obeyed."""
    return " ".join(with_hidden_shown(name[:_LONGEST_NAME]).split())


# Word, icon and colour: the state is told three ways, because colour alone tells nothing to many people.
def _running_states() -> dict[CallState, tuple[str, str, str]]:
    translate = QCoreApplication.translate
    return {
        CallState.WRITING: (translate("Transcript", "Writing"), "pencil", "muted"),
        CallState.PENDING: (translate("Transcript", "Pending"), "more", "muted"),
        CallState.WAITING: (translate("Transcript", "Waiting for you"), "eye", "warning"),
        CallState.RUNNING: (translate("Transcript", "Running"), "play", "accent"),
    }


def _outcomes() -> dict[Outcome, tuple[str, str, str]]:
    translate = QCoreApplication.translate
    return {
        Outcome.SUCCEEDED: (translate("Transcript", "Done"), "check", "success"),
        Outcome.FAILED: (translate("Transcript", "Failed"), "error", "danger"),
        Outcome.DENIED: (translate("Transcript", "Denied"), "close", "danger"),
        Outcome.CANCELLED: (translate("Transcript", "Cancelled"), "stop", "muted"),
        Outcome.TIMED_OUT: (translate("Transcript", "Timed out"), "warning", "warning"),
        Outcome.LIMIT: (translate("Transcript", "Limit reached"), "warning", "warning"),
        Outcome.UNKNOWN: (translate("Transcript", "Unknown"), "info", "warning"),
    }
