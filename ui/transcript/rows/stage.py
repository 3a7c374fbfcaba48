"""What every row works with, and what it says happened."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakMethod

from PySide6.QtCore import QObject, QSize, QTimer, Signal
from PySide6.QtGui import QPixmap

from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.images import UrlSource
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.code.growing import Coloured, Standing, coloured_more
from ui.transcript.blocks.code.host import CodeHost
from ui.transcript.blocks.code.syntax import Word, words_by_line
from ui.transcript.blocks.diagram.diagram_block import LANGUAGES, DiagramBlock, DiagramHost
from ui.transcript.blocks.diagram.diagrams import Diagrams
from ui.transcript.blocks.math.formulas import Formulas, sharpest
from ui.transcript.blocks.picture.remote_block import RemoteBlock, RemoteHost
from ui.transcript.blocks.picture.thumbnails_block import ThumbnailsBlock
from ui.transcript.look import Look
from ui.transcript.markdown.inline import RemoteImage
from ui.transcript.pictures import Thumbnails
from ui.transcript.remote_pictures import RemotePictures
from ui.transcript.workshop import Result, Workshop

_COLOURED = 200
"""Code blocks whose colours are remembered."""

_REST = 90
"""Milliseconds."""

_UNPAINTED = 300
"""Milliseconds after which colours of code that has stopped growing are painted by themselves."""

_AT_ONCE = 40
"""Code blocks that wait for colours; earlier ones ask again when they are seen again."""


class RowFacts(QObject):
    """What a person did in a row."""

    changed = Signal(str)
    arrived = Signal(str)
    remedy_requested = Signal(str, object)
    approval_requested = Signal(str)
    image_opened = Signal(object)
    code_copied = Signal(str)
    save_requested = Signal(str, str)
    details_copied = Signal(str)
    link_activated = Signal(str)


@dataclass(slots=True)
class Choices:
    """What the person unfolded, folded or wrapped. View state: it is never stored with a conversation."""

    made: dict[tuple[str, str], bool] = field(default_factory=dict[tuple[str, str], bool])

    def get(self, item_id: str, what: str, *, default: bool) -> bool:
        """The person's choice, or the default when there is none."""
        return self.made.get((item_id, what), default)

    def set(self, item_id: str, what: str, *, value: bool) -> None:
        """Choose."""
        self.made[item_id, what] = value


class Highlighter(QObject):
    """Colours of code, from what is remembered, or from the worker once nobody has asked for a moment.

    The worker shares the interpreter with the screen, so colouring waits until scrolling has come to rest.
    """

    def __init__(self, workshop: Workshop, parent: QObject) -> None:
        super().__init__(parent)
        self._workshop = workshop
        self._waiting: dict[tuple[str, str], Callable[[list[list[Word]]], None]] = {}
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST)
        self._rest.timeout.connect(self._send)
        self._known: OrderedDict[tuple[str, str], list[list[Word]]] = OrderedDict()
        self._growing: list[Callable[[], None]] = []
        self._beat = QTimer(self)
        self._beat.setSingleShot(True)
        self._beat.setInterval(_REST)
        self._beat.timeout.connect(self._send_growing)
        self._unpainted: list[Callable[[], None]] = []
        self._late = QTimer(self)
        self._late.setSingleShot(True)
        self._late.setInterval(_UNPAINTED)
        self._late.timeout.connect(self._paint)

    def colour(self, text: str, language: str, then: Callable[[list[list[Word]]], None]) -> None:
        """Ask; the answer comes at once or later."""
        key = (language, text)
        if key in self._known:
            self._known.move_to_end(key)
            then(self._known[key])
            return
        self._waiting[key] = then
        while len(self._waiting) > _AT_ONCE:
            del self._waiting[next(iter(self._waiting))]
        self._rest.start()

    def colour_more(
        self, text: str, language: str, standing: Standing, then: Callable[[Coloured | None], None]
    ) -> None:
        """Colours for what was added to code that still grows; asked for a few times a second."""
        job = partial(coloured_more, text, language, standing)
        self._growing.append(lambda: self._workshop.do(("growing", language, standing, text), job, then))
        if not self._beat.isActive():
            self._beat.start()

    def elsewhere(self, key: Hashable, job: Callable[[], Result], then: Callable[[Result], None]) -> None:
        """Do the job in the worker, and hand its result to `then`."""
        self._workshop.do(key, job, then)

    def later(self, act: Callable[[], None]) -> None:
        """Once some frames have passed; never, when the view is gone by then."""
        self._unpainted.append(act)
        if not self._late.isActive():
            self._late.start()

    @property
    def is_idle(self) -> bool:
        """Whether no colours are still to come."""
        return not (self._waiting or self._growing or self._unpainted or self._workshop.is_busy)

    def stop(self) -> None:
        """Nothing is coloured any more."""
        self._rest.stop()
        self._beat.stop()
        self._late.stop()

    def _paint(self) -> None:
        unpainted, self._unpainted = self._unpainted, []
        for act in unpainted:
            act()

    def _send_growing(self) -> None:
        growing, self._growing = self._growing, []
        for ask in growing:
            ask()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for key, then in waiting.items():
            self._ask(key, then)

    def _ask(self, key: tuple[str, str], then: Callable[[list[list[Word]]], None]) -> None:
        language, text = key

        def arrived(words: list[list[Word]]) -> None:
            self._known[key] = words
            if len(self._known) > _COLOURED:
                self._known.popitem(last=False)
            then(words)

        self._workshop.do(("code", *key), lambda: words_by_line(text, language), arrived)


class Seconds(QObject):
    """Tells each second to whom it was asked for, as long as they live and want it; without any it stands still."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._hearers: list[WeakMethod[Callable[[], bool]]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(1000)
        self._timer.timeout.connect(self._tick)

    def tell(self, hear: Callable[[], bool]) -> None:
        """A method that answers whether it wants to hear of the next second too."""
        self._hearers.append(WeakMethod(hear))
        self._timer.start()

    def stop(self) -> None:
        """No more seconds."""
        self._timer.stop()

    def _tick(self) -> None:
        self._hearers = [each for each in self._hearers if (hear := each()) and hear()]
        if not self._hearers:
            self._timer.stop()


@dataclass(slots=True)
class Stage:
    """Shared by all rows of one view."""

    look: Look
    facts: RowFacts
    thumbnails: Thumbnails
    highlighter: Highlighter
    choices: Choices = field(default_factory=Choices)
    formulas: Formulas | None = None
    remote: RemotePictures | None = None
    diagrams: Diagrams | None = None
    seconds: Seconds | None = None

    def code_block(self, text: str, info: str, host: CodeHost, item_id: str, *, is_open: bool = False) -> CodeBlock:
        """Code of an item; what draws a diagram can show it."""
        language = info.split(maxsplit=1)[0].lower() if info.strip() else ""
        if self.diagrams is None or language not in LANGUAGES:
            return CodeBlock(text, info, host, is_open=is_open)

        def remember(shown: bool) -> None:  # noqa: FBT001  what the callback carries
            self.choices.set(item_id, f"diagram {block.text}", value=shown)

        shown = self.choices.get(item_id, f"diagram {text}", default=False)
        drawing = DiagramHost(self.diagrams, sharpest, self.facts.image_opened.emit, shown, remember)
        block = DiagramBlock(text, info, host, drawing, is_open=is_open)
        return block

    def remote_host(self, item_id: str) -> RemoteHost | None:
        """What a block that shows a picture of the web talks to."""
        if self.remote is None:
            return None
        arrived = partial(self.facts.arrived.emit, item_id)
        return RemoteHost(self.remote, self.thumbnails.get, self.facts.image_opened.emit, arrived)

    def image_blocks(self, images: Sequence[Image], item_id: str) -> list[Block]:
        """Pictures of a message: those that are here side by side, then those of the web, which are only named."""
        here = [image for image in images if not isinstance(image.source, UrlSource)]
        blocks: list[Block] = [
            RemoteBlock(RemoteImage(image.name or "", image.source.url), self.remote_host(item_id))
            for image in images
            if isinstance(image.source, UrlSource)
        ]
        if here:
            arrived = partial(self.facts.arrived.emit, item_id)
            blocks.insert(0, ThumbnailsBlock(here, self._thumbnail, self.facts.image_opened.emit, arrived))
        return blocks

    def _thumbnail(self, image: Image, size: QSize, then: Callable[[], None]) -> tuple[bool, QPixmap | None]:
        return (True, None) if isinstance(image.source, UrlSource) else self.thumbnails.get(image.source, size, then)

    def code_host(self, item_id: str, key: str) -> CodeHost:
        """What a code block of an item talks to; whether its lines wrap is remembered under the key."""

        def remember(wraps: bool) -> None:  # noqa: FBT001  what the callback carries
            self.choices.set(item_id, key, value=wraps)

        return CodeHost(
            self.facts.code_copied.emit,
            partial(self.facts.changed.emit, item_id),
            self.highlighter.colour,
            self.choices.get(item_id, key, default=False),
            remember,
            save=self.facts.save_requested.emit,
            arrived=partial(self.facts.arrived.emit, item_id),
            colouring_more=self.highlighter.colour_more,
            later=self.highlighter.later,
        )
