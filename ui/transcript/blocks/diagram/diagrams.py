"""Diagrams as pictures: drawn one after the other beside everything else, kept in a bounded cache."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QSize
from PySide6.QtGui import QImage, QPixmap

from ui.look.theme import Theme
from ui.transcript.blocks.diagram.renderer import NoDiagram, Reason, Renderer, Sketch, installed
from ui.transcript.pictures import HeldPicture
from ui.transcript.workshop import Workshop

_KEPT_PIXELS = 32_000_000
_KEPT_PROBLEMS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Diagram:
    """A picture, `scale` pixels for each of its own, and the file that it was made of."""

    picture: QPixmap
    scale: float
    held: HeldPicture

    @property
    def size(self) -> QSize:
        """Its own."""
        return QSize(round(self.picture.width() / self.scale), round(self.picture.height() / self.scale))


@dataclass(slots=True, eq=False)
class _Attempt:
    """One try at a sketch: what is asked for again after it was stopped is another one."""

    sketch: Sketch
    is_stopped: bool = False


class Diagrams:
    """Asked for a diagram, it answers from its cache, or later through the callback."""

    def __init__(self, renderer: Renderer | None = None) -> None:
        self._renderer = renderer
        self._workshop = Workshop()
        self._kept: OrderedDict[Sketch, Diagram] = OrderedDict()
        self._pixels = 0
        self._problems: OrderedDict[Sketch, NoDiagram] = OrderedDict()
        self._attempts: dict[Sketch, _Attempt] = {}

    def get(self, sketch: Sketch) -> Diagram | NoDiagram | None:
        """What is there already, or why it could not be drawn."""
        found = self._kept.get(sketch)
        if found:
            self._kept.move_to_end(sketch)
        return found or self._problems.get(sketch)

    def draw(self, sketch: Sketch, then: Callable[[Diagram | NoDiagram], None]) -> None:
        """Draw it, and hand it to `then`; the same source in other colours or at another size is stopped."""
        if self._renderer is None:
            self._renderer = installed()
        renderer = self._renderer
        for other in [each for each in self._attempts if each.source == sketch.source and each != sketch]:
            self.stop(other)
        renderer.wanted(sketch)
        attempt = self._attempts.setdefault(sketch, _Attempt(sketch))

        def arrived(result: tuple[bytes, QImage] | NoDiagram) -> None:
            if self._attempts.get(sketch) is attempt:
                del self._attempts[sketch]
            if isinstance(result, NoDiagram):
                then(self._keep_problem(attempt, result))
            else:
                then(self._keep(sketch, *result))

        self._workshop.do(attempt, lambda: _work(renderer, attempt), arrived)

    def stop(self, sketch: Sketch) -> None:
        """End what is being drawn; whoever waits for it is told."""
        if attempt := self._attempts.pop(sketch, None):
            attempt.is_stopped = True
        if self._renderer:
            self._renderer.stop(sketch)

    def close(self) -> None:
        """End everything; waits for the process that was ended."""
        if self._renderer:
            self._renderer.close()
        self._workshop.close()

    def _keep_problem(self, attempt: _Attempt, problem: NoDiagram) -> NoDiagram:
        if attempt.is_stopped or problem.reason is Reason.STOPPED:
            return NoDiagram(Reason.STOPPED)
        self._problems[attempt.sketch] = problem
        while len(self._problems) > _KEPT_PROBLEMS:
            self._problems.popitem(last=False)
        return problem

    def _keep(self, sketch: Sketch, data: bytes, image: QImage) -> Diagram:
        made = Diagram(QPixmap.fromImage(image), sketch.scale, HeldPicture(f"diagram {hash(sketch)}", "", data))
        self._problems.pop(sketch, None)
        if sketch not in self._kept:
            self._kept[sketch] = made
            self._pixels += image.width() * image.height()
        while self._pixels > _KEPT_PIXELS and len(self._kept) > 1:
            old = self._kept.popitem(last=False)[1].picture
            self._pixels -= old.width() * old.height()
        return made


def sketch_of(source: str, theme: Theme, scale: float) -> Sketch:
    """In the colours of a theme, by the names that Mermaid's theme "base" has for them."""
    colors: dict[str, str | bool] = {
        "darkMode": theme.is_dark,
        "background": theme.code_background,
        "primaryColor": theme.user_bubble,
        "primaryTextColor": theme.text,
        "primaryBorderColor": theme.accent,
        "secondaryColor": theme.hover,
        "secondaryTextColor": theme.text,
        "tertiaryColor": theme.surface,
        "tertiaryTextColor": theme.text,
        "tertiaryBorderColor": theme.border,
        "lineColor": theme.muted,
        "textColor": theme.text,
        "titleColor": theme.text,
        "noteBkgColor": theme.warning_background,
        "noteTextColor": theme.text,
        "noteBorderColor": theme.border,
        "edgeLabelBackground": theme.code_background,
        "clusterBkg": theme.surface,
        "clusterBorder": theme.border,
        "fontSize": "15px",
    }
    return Sketch(source, tuple(colors.items()), scale)


def _work(renderer: Renderer, attempt: _Attempt) -> tuple[bytes, QImage] | NoDiagram:
    """In the worker."""
    if attempt.is_stopped:
        return NoDiagram(Reason.STOPPED)
    found = renderer.draw(attempt.sketch)
    if isinstance(found, NoDiagram):
        return found
    image = QImage.fromData(found)
    return NoDiagram(Reason.BROKE) if image.isNull() else (found, image)
