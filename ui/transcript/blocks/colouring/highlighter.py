"""What asks for colours of code, and when: not while scrolling, and nothing twice."""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QTimer

from ui.transcript.blocks.colouring.coloured import (
    HighlightedLines,
    HighlightRequest,
    HighlightSlice,
    LexerState,
    StyledWord,
)
from ui.transcript.blocks.colouring.colourist import HighlighterProcess, HighlightJob
from ui.transcript.blocks.colouring.frames import HighlightAnswer
from ui.transcript.workshop import JobQueue, Result

_MAX_CACHED = 200
"""Code blocks whose colours are remembered."""

_QUIET_MS = 90
"""Milliseconds."""

_UNPAINTED_MS = 300
"""Milliseconds after which colours of code that has stopped growing are painted by themselves."""

_IMMEDIATE_LINES = 40
"""Code blocks that wait for colours; earlier ones ask again when they are seen again."""

OnSlice = Callable[[HighlightSlice], None]


@dataclass(slots=True)
class _Request:
    """Who waits for a block, and what has come of it."""

    code: HighlightRequest
    listeners: list[OnSlice] = field(default_factory=list[OnSlice])
    words: list[list[StyledWord]] = field(default_factory=list[list[StyledWord]])

    def add(self, on_slice: OnSlice) -> None:
        """One more, who hears what has come already."""
        if on_slice not in self.listeners:
            self.listeners.append(on_slice)
            if self.words:
                on_slice(HighlightSlice(0, self.words, is_last=False))


class Highlighter(QObject):
    """Colours of code, from what is remembered, or from the colourist once nobody has asked for a moment.

    What scrolls by is not worth colouring, so that waits until scrolling has come to rest.
    """

    def __init__(self, job_queue: JobQueue, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self.process = HighlighterProcess(self._next_job, self)
        self._waiting: OrderedDict[HighlightRequest, _Request] = OrderedDict()
        self._ready: OrderedDict[HighlightRequest, _Request] = OrderedDict()
        self._at_hand: _Request | None = None
        self._cache: OrderedDict[HighlightRequest, list[list[StyledWord]]] = OrderedDict()
        self._growing: list[HighlightJob] = []
        self._ready_growing: deque[HighlightJob] = deque()
        self._unpainted: list[Callable[[], None]] = []
        self._rest = self._timer(_QUIET_MS, self._send)
        self._beat = self._timer(_QUIET_MS, self._send_growing)
        self._late = self._timer(_UNPAINTED_MS, self._paint)

    def highlight(self, text: str, language: str, then: OnSlice) -> None:
        """Ask; the answer comes at once or later, in slices."""
        code = HighlightRequest(text, language)
        if code in self._cache:
            self._cache.move_to_end(code)
            then(HighlightSlice(0, self._cache[code], is_last=True))
        elif self.process.is_refused(code):
            then(HighlightSlice(0, [], is_last=True))
        elif self._at_hand and self._at_hand.code == code:
            self._at_hand.add(then)
        elif code in self._ready:
            self._ready[code].add(then)
        else:
            self._waiting.setdefault(code, _Request(code)).add(then)
            _truncate(self._waiting)
            self._rest.start()

    def highlight_more(
        self, text: str, language: str, lexer_state: LexerState, then: Callable[[HighlightedLines | None], None]
    ) -> None:
        """Colours for what was added to code that still grows; asked for a few times a second."""

        def on_slice(found: HighlightAnswer) -> None:
            then(found if isinstance(found, HighlightedLines) else None)

        self._growing.append(HighlightJob(HighlightRequest(text, language, lexer_state), on_slice))
        if not self._beat.isActive():
            self._beat.start()

    def run_in_worker(self, key: Hashable, job: Callable[[], Result], then: Callable[[Result], None]) -> None:
        """Do the job in the worker, and hand its result to `then`."""
        self._job_queue.submit(key, job, then)

    def run_later(self, callback: Callable[[], None]) -> None:
        """Once some frames have passed; never, when the view is gone by then."""
        self._unpainted.append(callback)
        if not self._late.isActive():
            self._late.start()

    @property
    def is_idle(self) -> bool:
        """Whether no colours are still to come."""
        request = self._waiting or self._ready or self._growing or self._ready_growing or self.process.is_busy
        return not (request or self._unpainted or self._job_queue.is_busy)

    def stop(self) -> None:
        """Nothing is coloured any more."""
        self._rest.stop()
        self._beat.stop()
        self._late.stop()
        self.process.close()

    def _timer(self, interval: int, callback: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(interval)
        timer.timeout.connect(callback)
        return timer

    def _paint(self) -> None:
        unpainted, self._unpainted = self._unpainted, []
        for callback in unpainted:
            callback()

    def _send_growing(self) -> None:
        self._ready_growing += self._growing
        self._growing = []
        self.process.start_next()

    def _send(self) -> None:
        self._ready.update(self._waiting)
        _truncate(self._ready)
        self._waiting.clear()
        self.process.start_next()

    def _next_job(self) -> HighlightJob | None:
        """What grows comes first: it is looked at, and short."""
        if self._ready_growing:
            return self._ready_growing.popleft()
        if not self._ready:
            return None
        _, request = self._ready.popitem(last=False)
        self._at_hand = request
        return HighlightJob(request.code, lambda answer: self._on_answer(request, answer))

    def _on_answer(self, request: _Request, answer: HighlightAnswer) -> None:
        found = answer if isinstance(answer, HighlightSlice) else HighlightSlice(len(request.words), [], is_last=True)
        request.words[found.line :] = found.words
        if found.is_last:
            self._at_hand = None
            if answer is not None:
                self._cache_result(request)
        for on_slice in [*request.listeners]:
            on_slice(found)

    def _cache_result(self, request: _Request) -> None:
        self._cache[request.code] = request.words
        if len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)


def _truncate(request: OrderedDict[HighlightRequest, _Request]) -> None:
    while len(request) > _IMMEDIATE_LINES:
        request.popitem(last=False)
