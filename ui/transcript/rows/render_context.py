"""What all rows share: style, caches, highlighter and view state, and the signals of what a person did in a row."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakMethod

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_agent.conversation.branches import Versions
from desktop_agent.conversation.items import Item
from desktop_agent.types.blocks import Image, UrlSource
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.highlighter import Highlighter
from ui.transcript.blocks.diagram_block import DIAGRAM_LANGUAGES, DiagramBlock, DiagramCallbacks
from ui.transcript.blocks.diagram_renderer import DiagramCache
from ui.transcript.blocks.image_blocks import RemoteImageBlock, RemoteImageCallbacks, ThumbnailsBlock
from ui.transcript.blocks.image_store import RemoteImages, ThumbnailCache
from ui.transcript.blocks.math.formulas import FormulaCache
from ui.transcript.markdown.inline import RemoteImage
from ui.transcript.style import RenderStyle

_MAX_LARGE_BLOCKS = 6


class RowSignals(QObject):
    """The signals of what a person did in a row."""

    changed = Signal(str)
    content_arrived = Signal(str)
    remedy_requested = Signal(str, object)
    approval_requested = Signal(str)
    image_opened = Signal(object)
    code_copied = Signal(str)
    save_requested = Signal(str, str)
    details_copied = Signal(str)
    link_activated = Signal(str)
    undo_requested = Signal(str)
    undo_since_requested = Signal(str)
    redo_requested = Signal(str)
    copy_requested = Signal(str)
    """The id of the last item of a message; the ones below carry the id of a message."""
    edit_requested = Signal(str)
    regenerate_requested = Signal(str)
    branch_requested = Signal(str)
    version_requested = Signal(str)
    delete_requested = Signal(str)
    alternatives_requested = Signal(str)
    """The id of the last item of an answer that is to be asked for anew with another model."""
    action_refused = Signal(str)
    """The reason."""


@dataclass(slots=True)
class ViewChoices:
    """What the person unfolded, folded or wrapped. View state: it is never stored with a conversation."""

    made: dict[tuple[str, str], bool] = field(default_factory=dict[tuple[str, str], bool])

    def get(self, item_id: str, what: str, *, default: bool) -> bool:
        """Return the person's choice, or the default when there is none."""
        return self.made.get((item_id, what), default)

    def set(self, item_id: str, what: str, value: bool) -> None:  # noqa: FBT001  what callbacks carry
        """Store the person's choice."""
        self.made[item_id, what] = value


class SecondTimer(QObject):
    """Calls its subscribers each second, as long as they live and return True; without any it does not run."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.starts: dict[str, float] = {}
        """When running calls were first seen, by item id; kept here because a change of zoom rebuilds their rows."""
        self._subscribers: list[WeakMethod[Callable[[], bool]]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(1000)
        self._timer.timeout.connect(self._on_tick)

    def subscribe(self, listener: Callable[[], bool]) -> None:
        """Call a method each second for as long as it returns True; the method is held weakly."""
        self._subscribers.append(WeakMethod(listener))
        self._timer.start()

    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    def _on_tick(self) -> None:
        self._subscribers = [reference for reference in self._subscribers if (listener := reference()) and listener()]
        if not self._subscribers:
            self._timer.stop()


class LargeBlockCache:
    """The last few blocks that took long to make, for rows that are made anew."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, str], tuple[object, Block]] = OrderedDict()

    def get(self, item_id: str, what: str, source: object) -> Block | None:
        """Return the block that was made from this very object."""
        made_from, block = self._made.get((item_id, what), (None, None))
        if block is None or made_from is not source:
            return None
        self._made.move_to_end((item_id, what))
        # Its former row did not drop its layout.
        block.forget()
        return block

    def add(self, item_id: str, what: str, source: object, block: Block) -> None:
        """Add a block."""
        self._made[item_id, what] = source, block
        self._made.move_to_end((item_id, what))
        if len(self._made) > _MAX_LARGE_BLOCKS:
            self._made.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A model or a reasoning level with which an answer can be asked for anew; `choose` receives the message's id."""

    label: str
    choose: Callable[[str], None]
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class AlternativeGroup:
    """Alternatives of one kind, in a submenu with this title."""

    title: str
    alternatives: Sequence[Alternative]


@dataclass(frozen=True, slots=True)
class MessageActions:
    """What can be done with the messages of a conversation now.

    `versions` are those of what is in view, by the message that begins them; `continuations` are the messages with
    which other branches go on below it. `refusal` says why nothing can be changed now; `is_only_read`: other versions
    can be shown all the same.
    """

    versions: Mapping[str, Versions] = field(default_factory=dict[str, Versions])
    continuations: tuple[str, ...] = ()
    is_working: bool = False
    refusal: str = ""
    is_only_read: bool = False
    alternatives: Callable[[], Sequence[AlternativeGroup]] = tuple


@dataclass(slots=True)
class RenderContext:
    """What all rows of one view share."""

    style: RenderStyle
    signals: RowSignals
    thumbnails: ThumbnailCache
    highlighter: Highlighter
    formulas: FormulaCache
    remote: RemoteImages
    diagrams: DiagramCache
    seconds: SecondTimer
    choices: ViewChoices = field(default_factory=ViewChoices)
    large: LargeBlockCache = field(default_factory=LargeBlockCache)
    items: Iterable[Item] = ()
    """The items of the transcript."""
    when_whole: Callable[[Callable[[], None]], None] = lambda then: then()
    """Calls back once the whole conversation is loaded, at once if it is."""
    is_whole: Callable[[], bool] = lambda: True
    message_actions: MessageActions | None = None
    """What can be done with messages; None where nothing is offered below them."""
    edited_message: str = ""
    """The prompt in whose place there is an editor."""
    editor_height: int = 0
    """Pixels of that editor."""

    def is_edited(self, item: Item) -> bool:
        """Return whether the editor is in the place of this item."""
        return bool(item.message_id) and item.message_id == self.edited_message

    def large_block(
        self, item_id: str, what: str, source: object, make: Callable[[], Block], ready: Callable[[], None]
    ) -> Block | None:
        """Return the block that `make` makes from `source` in the worker; until then None, and `ready` is called."""
        if block := self.large.get(item_id, what, source):
            return block

        def on_made(block: Block) -> None:
            self.large.add(item_id, what, source, block)
            ready()

        self.highlighter.job_queue.submit(("large", item_id, what, id(source)), make, on_made)
        return None

    def code_block(
        self, text: str, info: str, callbacks: CodeCallbacks, item_id: str, *, is_open: bool = False
    ) -> CodeBlock:
        """Make a code block; code of a diagram language can show its diagram."""
        language = info.split(maxsplit=1)[0].lower() if info.strip() else ""
        if language not in DIAGRAM_LANGUAGES:
            return CodeBlock(text, info, callbacks, is_open=is_open)
        shown = self.choices.get(item_id, f"diagram {text}", default=False)
        drawing = DiagramCallbacks(
            self.diagrams,
            self.signals.image_opened.emit,
            shown,
            lambda shown: self.choices.set(item_id, f"diagram {block.text}", shown),
        )
        block = DiagramBlock(text, info, callbacks, drawing, is_open=is_open)
        return block

    def remote_image_callbacks(self, item_id: str) -> RemoteImageCallbacks:
        """Return the callbacks of a block that shows an image of the web."""
        arrived = partial(self.signals.content_arrived.emit, item_id)
        return RemoteImageCallbacks(self.remote, self.thumbnails.get, self.signals.image_opened.emit, arrived)

    def image_blocks(self, images: Sequence[Image], item_id: str) -> list[Block]:
        """Make the blocks of a message's images: local ones side by side, then those of the web by name."""
        local_images = [image for image in images if not isinstance(image.source, UrlSource)]
        blocks: list[Block] = [
            RemoteImageBlock(RemoteImage(image.name or "", image.source.url), self.remote_image_callbacks(item_id))
            for image in images
            if isinstance(image.source, UrlSource)
        ]
        if local_images:
            arrived = partial(self.signals.content_arrived.emit, item_id)
            opened = self.signals.image_opened.emit
            blocks.insert(0, ThumbnailsBlock(local_images, self.thumbnails.get, opened, arrived))
        return blocks

    def code_callbacks(self, item_id: str, key: str) -> CodeCallbacks:
        """Return the callbacks of a code block; the choice to wrap its lines is stored under the key."""
        return CodeCallbacks(
            self.signals.code_copied.emit,
            partial(self.signals.changed.emit, item_id),
            self.highlighter.highlight,
            self.choices.get(item_id, key, default=False),
            partial(self.choices.set, item_id, key),
            save=self.signals.save_requested.emit,
            on_arrived=partial(self.signals.content_arrived.emit, item_id),
            highlight_more=self.highlighter.highlight_more,
            run_later=self.highlighter.run_later,
        )
