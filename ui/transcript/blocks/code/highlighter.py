"""Request syntax highlighting, not while scrolling and nothing twice, and run the worker process that does it."""

import signal
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Qt, QTimer

from ui.transcript.blocks.code.highlighter_protocol import (
    HEADER_SIZE,
    HighlightAnswer,
    HighlightedLines,
    HighlightRequest,
    HighlightSlice,
    LexerState,
    StyledWord,
    decode_answer,
    encode_frame,
    encode_request,
    frame_length,
)
from ui.transcript.workers import JobQueue, Result, worker_command, worker_environment, worker_folder

# Milliseconds of wall time for one slice. The worker ends itself earlier, after a second of processor time; this is for
# machines without such a limit, and for a worker that hangs.
TIMEOUT_MS = 5000

# Milliseconds without work after which the worker is released.
IDLE_MS = 30_000

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
    crashes: int = 0


class HighlighterProcess(QObject):
    """Runs the job that `next_job` returns whenever the worker is free, which starts with the first job.

    `started` counts workers, `sent` jobs sent to one.
    """

    def __init__(self, next_job: Callable[[], HighlightJob | None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.started = 0
        self.sent = 0
        self._next_job = next_job
        self._child: QProcess | None = None
        self._job: HighlightJob | None = None
        self._is_closed = False
        self._cannot_start = False
        self._overruns: Counter[str] = Counter()
        self._refused_texts: OrderedDict[bytes, None] = OrderedDict()
        self._late = _single_shot(self, TIMEOUT_MS, self._on_late)
        self._idle = _single_shot(self, IDLE_MS, self._let_finish)
        self._turn = _single_shot(self, 0, self._read)

    @property
    def is_busy(self) -> bool:
        """Return whether a job is running."""
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
                self._send(job)
        if self._child and self._job is None:
            self._idle.start()

    def close(self) -> None:
        """Stop, and end the worker."""
        self._is_closed = True
        self._job = None
        for timer in (self._late, self._idle, self._turn):
            timer.stop()
        self._child = None
        for child in self.findChildren(QProcess):
            child.blockSignals(True)
            child.kill()
            child.waitForFinished(TIMEOUT_MS)

    def _send(self, job: HighlightJob) -> None:
        self._job = job
        self._idle.stop()
        child = self._child or self._start()
        self.sent += 1
        child.write(encode_frame(encode_request(job.code)))
        self._late.start()

    def _start(self) -> QProcess:
        child = self._child = QProcess(self)
        own = QProcessEnvironment()
        for name, value in worker_environment().items():
            own.insert(name, value)
        child.setProcessEnvironment(own)
        child.setWorkingDirectory(worker_folder())
        child.setStandardErrorFile(QProcess.nullDevice())
        child.readyReadStandardOutput.connect(self._turn.start)
        child.finished.connect(partial(self._on_finished, child))
        # The error may be reported before `start` returns.
        child.errorOccurred.connect(partial(self._on_error, child), Qt.ConnectionType.QueuedConnection)
        program, *words = worker_command("colouring")
        child.start(program, words)
        self.started += 1
        return child

    def _read(self) -> None:
        """Handle one message; other events of the window come before the next."""
        child, job = self._child, self._job
        if child is None or child.bytesAvailable() < HEADER_SIZE:
            return
        try:
            length = frame_length(bytes(child.peek(HEADER_SIZE).data()))
            if child.bytesAvailable() < HEADER_SIZE + length:
                return
            child.skip(HEADER_SIZE)
            answer = decode_answer(bytes(child.read(length).data()))
        except (ValueError, LookupError, TypeError):
            self._end(child)
            self._give_up(count=False)
            return
        if job is None:
            return
        self._late.start()
        if not isinstance(answer, HighlightSlice) or answer.is_last:
            self._job = None
            self._late.stop()
        job.on_answer(answer)
        self._turn.start()
        self.start_next()

    def _on_late(self) -> None:
        process = self._child
        # If unread data has arrived, it was the window that blocked.
        if self._turn.isActive() or (process and process.waitForReadyRead(0)):
            self._late.start()
        elif process and process is self._child:
            self._end(process)
            self._give_up(count=True)

    def _on_finished(self, child: QProcess, *_: object) -> None:
        child.deleteLater()
        if child is not self._child:
            return
        self._child = None
        self._turn.stop()
        self._late.stop()
        job, self._job = self._job, None
        if job is None:
            return
        job.crashes += 1
        if _hit_cpu_limit(child) or job.crashes >= _MAX_CRASHES:
            self._job = job
            self._give_up(count=_hit_cpu_limit(child))
        else:
            self._send(job)

    def _on_error(self, child: QProcess, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and child is self._child:
            self._cannot_start = True
            self._child = None
            child.deleteLater()
            self._give_up(count=False)

    def _give_up(self, *, count: bool) -> None:
        """Answer the current job with None; `count` records a timeout of its language."""
        self._turn.stop()
        self._late.stop()
        job, self._job = self._job, None
        if job:
            self._refused_texts[_digest_of(job.code)] = None
            while len(self._refused_texts) > _MAX_REFUSED:
                self._refused_texts.popitem(last=False)
            self._overruns[job.code.language.lower()] += count
            job.on_answer(None)
        self.start_next()

    def _let_finish(self) -> None:
        if self._child:
            self._child.closeWriteChannel()
            self._child = None

    def _end(self, child: QProcess) -> None:
        self._child = None
        child.kill()


def _single_shot(parent: QObject, interval: int, callback: Callable[[], None]) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(interval)
    timer.timeout.connect(callback)
    return timer


def _hit_cpu_limit(child: QProcess) -> bool:
    """Return whether the system ended it at its CPU limit: Qt reports the signal."""
    crashed = child.exitStatus() is QProcess.ExitStatus.CrashExit
    return sys.platform != "win32" and crashed and child.exitCode() == signal.SIGPROF


def _digest_of(code: HighlightRequest) -> bytes:
    """Return a digest: refused texts may be as long as a book."""
    return blake2b(f"{code.language}\0{code.text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


# Code blocks whose highlighting is cached.
_MAX_CACHED = 200

# Milliseconds.
_QUIET_MS = 90

# Milliseconds after which highlighted code that has stopped growing is repainted.
_UNPAINTED_MS = 300

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
        self._job_queue = job_queue
        self.process = HighlighterProcess(self._next_job, self)
        self._waiting: OrderedDict[HighlightRequest, _Request] = OrderedDict()
        self._ready: OrderedDict[HighlightRequest, _Request] = OrderedDict()
        self._current: _Request | None = None
        self._cache: OrderedDict[HighlightRequest, list[list[StyledWord]]] = OrderedDict()
        self._growing: list[HighlightJob] = []
        self._ready_growing: deque[HighlightJob] = deque()
        self._unpainted: list[Callable[[], None]] = []
        self._quiet_timer = _single_shot(self, _QUIET_MS, self._send)
        self._growing_timer = _single_shot(self, _QUIET_MS, self._send_growing)
        self._late = _single_shot(self, _UNPAINTED_MS, self._paint)

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

    def run_in_worker(self, key: Hashable, job: Callable[[], Result], then: Callable[[Result], None]) -> None:
        """Run a job in the worker thread and pass its result to `then`."""
        self._job_queue.submit(key, job, then)

    def run_later(self, callback: Callable[[], None]) -> None:
        """Call back after some frames, unless the view is gone by then."""
        self._unpainted.append(callback)
        if not self._late.isActive():
            self._late.start()

    @property
    def is_idle(self) -> bool:
        """Return whether no highlighting is pending."""
        request = self._waiting or self._ready or self._growing or self._ready_growing or self.process.is_busy
        return not (request or self._unpainted or self._job_queue.is_busy)

    def stop(self) -> None:
        """Stop all highlighting."""
        self._quiet_timer.stop()
        self._growing_timer.stop()
        self._late.stop()
        self.process.close()

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


def _truncate(request: OrderedDict[HighlightRequest, _Request]) -> None:
    while len(request) > _MAX_WAITING_BLOCKS:
        request.popitem(last=False)
