"""Request syntax highlighting from a worker process: each code once, and none while scrolling."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from desktop_agent.processes.worker import Worker, WorkerFailed, WorkerFailure
from desktop_agent.processes.worker_process import WorkerLimits
from ui.transcript.blocks.code.highlighter_protocol import (
    HighlightAnswer,
    HighlightedLines,
    HighlightRequest,
    HighlightSlice,
    LexerState,
    StyledWord,
)
from ui.transcript.workers import JobQueue

# It needs 24 million bytes, or 83 million when packaged, where Qt is loaded as well. 200,000 characters of any usual
# language take half of the time for one slice.
LIMITS = WorkerLimits(memory=500_000_000, seconds=1.0, call_seconds=10.0, niceness=5)

# Seconds of wall time for one slice, for machines without such limits, and for a worker that hangs.
_TIMEOUT = 5.0

# Timeouts of one language, after which it is no longer highlighted.
_MAX_OVERRUNS = 3

# Texts remembered as refused.
_MAX_REFUSED = 1000

# Unexplained crashes of the worker over one job.
_MAX_CRASHES = 2


@dataclass(slots=True, eq=False)
class HighlightJob:
    """Code to highlight. `on_answer` gets every slice; None is the last answer and means that there are no colours."""

    code: HighlightRequest
    on_answer: Callable[[HighlightAnswer], None]


class HighlighterProcess(QObject):
    """Runs the job that `next_job` returns whenever the worker is free. `sent` counts jobs sent to it."""

    _answered = Signal(object, object)

    def __init__(self, next_job: Callable[[], HighlightJob | None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.sent = 0
        self.worker = Worker(
            "ui.transcript.blocks.code.highlighter_worker:highlight",
            list[HighlightAnswer],
            LIMITS,
            timeout=_TIMEOUT,
            attempts=_MAX_CRASHES,
        )
        self._next_job = next_job
        self._job: HighlightJob | None = None
        self._thread = JobQueue()
        self._is_closed = False
        self._cannot_start = False
        self._overruns: Counter[str] = Counter()
        self._refused_texts: OrderedDict[bytes, None] = OrderedDict()
        self._answered.connect(self._on_answer, Qt.ConnectionType.QueuedConnection)

    @property
    def is_busy(self) -> bool:
        return self._job is not None

    def is_refused(self, code: HighlightRequest) -> bool:
        """Return whether this code failed before."""
        is_hopeless = self._overruns[code.language.lower()] >= _MAX_OVERRUNS or self._cannot_start
        return is_hopeless or (bool(self._refused_texts) and _digest_of(code) in self._refused_texts)

    def start_next(self) -> None:
        """Run the next job, if any."""
        while not self._is_closed and self._job is None and (job := self._next_job()):
            if self.is_refused(job.code):
                job.on_answer(None)
            else:
                self._job = job
                self.sent += 1
                self._thread.submit(job, partial(self._call, job), self._on_end)

    def close(self) -> None:
        """Stop, and end the worker."""
        self._is_closed = True
        self._job = None
        self.worker.close()
        self._thread.close()

    def _call(self, job: HighlightJob) -> WorkerFailure | None:
        """Run in the thread; return why it failed."""
        code = job.code
        state = (code.lexer_state.line, code.lexer_state.states) if code.lexer_state else None
        try:
            for answer in self.worker.call(code.text, code.language, state):
                self._answered.emit(job, answer)
        except WorkerFailed as error:
            return error.failure
        return None

    def _on_answer(self, job: HighlightJob, answer: HighlightAnswer) -> None:
        if job is self._job:
            job.on_answer(answer)

    def _on_end(self, failure: WorkerFailure | None) -> None:
        job, self._job = self._job, None
        if job and failure:
            self._cannot_start = failure is WorkerFailure.NOT_STARTED
            self._refuse(job.code, is_slow=failure is WorkerFailure.SLOW)
            job.on_answer(None)
        self.start_next()

    def _refuse(self, code: HighlightRequest, *, is_slow: bool) -> None:
        self._refused_texts[_digest_of(code)] = None
        while len(self._refused_texts) > _MAX_REFUSED:
            self._refused_texts.popitem(last=False)
        self._overruns[code.language.lower()] += is_slow


def _digest_of(code: HighlightRequest) -> bytes:
    # Refused texts may be as long as a book.
    return blake2b(f"{code.language}\0{code.text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


# Code blocks whose highlighting is cached.
_MAX_CACHED = 200

# Milliseconds before waiting requests are sent; each request of finished code begins them anew.
_QUIET_MS = 90

# Milliseconds before the callbacks of `run_later`, which repaint highlighted code that has stopped growing.
_LATER_MS = 300

# Waiting code blocks; dropped ones request again when they are visible again.
_MAX_WAITING_BLOCKS = 40

OnSlice = Callable[[HighlightSlice], None]


@dataclass(slots=True)
class _Request:
    """The blocks that wait for one text, and the result so far."""

    code: HighlightRequest
    listeners: list[OnSlice] = field(default_factory=list[OnSlice])
    words: list[list[StyledWord]] = field(default_factory=list[list[StyledWord]])

    def add(self, on_slice: OnSlice) -> None:
        """Add a listener, which gets the result so far."""
        if on_slice not in self.listeners:
            self.listeners.append(on_slice)
            if self.words:
                on_slice(HighlightSlice(0, self.words, is_last=False))


class Highlighter(QObject):
    """Highlights code from a cache, or in the worker once nothing was requested for a moment.

    Code that scrolls by is not worth highlighting, so requests wait until scrolling stops.
    """

    def __init__(self, job_queue: JobQueue, parent: QObject) -> None:
        super().__init__(parent)
        self.job_queue = job_queue
        self.process = HighlighterProcess(self._next_job, self)
        self._waiting: OrderedDict[HighlightRequest, _Request] = OrderedDict()
        self._ready: OrderedDict[HighlightRequest, _Request] = OrderedDict()
        self._current: _Request | None = None
        self._cache: OrderedDict[HighlightRequest, list[list[StyledWord]]] = OrderedDict()
        self._growing: list[HighlightJob] = []
        self._ready_growing: deque[HighlightJob] = deque()
        self._callbacks: list[Callable[[], None]] = []
        self._quiet_timer = QTimer(self, singleShot=True, interval=_QUIET_MS)
        self._quiet_timer.timeout.connect(self._send)
        self._growing_timer = QTimer(self, singleShot=True, interval=_QUIET_MS)
        self._growing_timer.timeout.connect(self._send_growing)
        self._late = QTimer(self, singleShot=True, interval=_LATER_MS)
        self._late.timeout.connect(self._run_callbacks)

    def highlight(self, text: str, language: str, then: OnSlice) -> None:
        """Request highlighting; `then` gets it in slices, now or later."""
        code = HighlightRequest(text, language)
        if code in self._cache:
            self._cache.move_to_end(code)
            then(HighlightSlice(0, self._cache[code], is_last=True))
        elif self.process.is_refused(code):
            then(HighlightSlice(0, [], is_last=True))
        elif self._current and self._current.code == code:
            self._current.add(then)
        elif code in self._ready:
            self._ready[code].add(then)
        else:
            self._waiting.setdefault(code, _Request(code)).add(then)
            _truncate(self._waiting)
            self._quiet_timer.start()

    def highlight_more(
        self, text: str, language: str, lexer_state: LexerState, then: Callable[[HighlightedLines | None], None]
    ) -> None:
        """Highlight what was added to growing code; requested a few times a second."""

        def on_slice(answer: HighlightAnswer) -> None:
            then(answer if isinstance(answer, HighlightedLines) else None)

        self._growing.append(HighlightJob(HighlightRequest(text, language, lexer_state), on_slice))
        if not self._growing_timer.isActive():
            self._growing_timer.start()

    def run_later(self, callback: Callable[[], None]) -> None:
        """Call back after some frames, unless the view is gone by then."""
        self._callbacks.append(callback)
        if not self._late.isActive():
            self._late.start()

    @property
    def is_idle(self) -> bool:
        """Return whether no highlighting is pending."""
        is_pending = self._waiting or self._ready or self._growing or self._ready_growing or self.process.is_busy
        return not (is_pending or self._callbacks or self.job_queue.is_busy)

    def stop(self) -> None:
        """Stop all highlighting."""
        self._quiet_timer.stop()
        self._growing_timer.stop()
        self._late.stop()
        self.process.close()

    def _run_callbacks(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
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
        """Return the next job. Growing code comes first: it is visible and short."""
        if self._ready_growing:
            return self._ready_growing.popleft()
        if not self._ready:
            return None
        _, request = self._ready.popitem(last=False)
        self._current = request
        return HighlightJob(request.code, lambda answer: self._on_answer(request, answer))

    def _on_answer(self, request: _Request, answer: HighlightAnswer) -> None:
        highlight_slice = (
            answer if isinstance(answer, HighlightSlice) else HighlightSlice(len(request.words), [], is_last=True)
        )
        request.words[highlight_slice.line :] = highlight_slice.words
        if highlight_slice.is_last:
            self._current = None
            if answer is not None:
                self._cache_result(request)
        for on_slice in [*request.listeners]:
            on_slice(highlight_slice)

    def _cache_result(self, request: _Request) -> None:
        self._cache[request.code] = request.words
        if len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)


def _truncate(requests: OrderedDict[HighlightRequest, _Request]) -> None:
    while len(requests) > _MAX_WAITING_BLOCKS:
        requests.popitem(last=False)
