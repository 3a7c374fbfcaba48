"""Ask for syntax highlighting, not while scrolling and nothing twice, and run the worker process that does it."""

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

TIMEOUT_MS = 5000
"""Milliseconds for one slice on a clock on the wall. The child ends itself earlier, after a second of the processor's
time; this is for a machine that has no such limit, and for a child that hangs."""

IDLE_MS = 30_000
"""Milliseconds without work after which the child is let go."""

_MAX_OVERRUNS = 3
"""Of one language, after which it is not asked for again."""

_MAX_REFUSED = 1000
"""Texts that are remembered as too much."""

_MAX_CRASHES = 2
"""Of the child, over one errand, that nobody can explain."""


@dataclass(slots=True, eq=False)
class HighlightJob:
    """Code, and who hears each answer; None is the last one, and says that there are no more colours."""

    code: HighlightRequest
    on_answer: Callable[[HighlightAnswer], None]
    crashes: int = 0


class HighlighterProcess(QObject):
    """Takes what `next_errand` gives whenever it is free. The child is started with the first errand.

    `started` counts the children, `sent` the errands that went to one.
    """

    def __init__(self, next_errand: Callable[[], HighlightJob | None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.started = 0
        self.sent = 0
        self._next_job = next_errand
        self._child: QProcess | None = None
        self._job: HighlightJob | None = None
        self._is_closed = False
        self._cannot_start = False
        self._overruns: Counter[str] = Counter()
        self._refused_texts: OrderedDict[bytes, None] = OrderedDict()
        self._late = self._timer(TIMEOUT_MS, self._on_late)
        self._idle = self._timer(IDLE_MS, self._let_finish)
        self._turn = self._timer(0, self._read)

    @property
    def is_busy(self) -> bool:
        """Whether one is being run."""
        return self._job is not None

    def is_refused(self, code: HighlightRequest) -> bool:
        """Whether it was too much before."""
        is_hopeless = self._overruns[code.language.lower()] >= _MAX_OVERRUNS or self._cannot_start
        return is_hopeless or (bool(self._refused_texts) and _digest_of(code) in self._refused_texts)

    def start_next(self) -> None:
        """There may be something to do."""
        while not self._is_closed and self._job is None and (job := self._next_job()):
            if self.is_refused(job.code):
                job.on_answer(None)
            else:
                self._send(job)
        if self._child and self._job is None:
            self._idle.start()

    def close(self) -> None:
        """Nothing is coloured any more, and nothing is left running."""
        self._is_closed = True
        self._job = None
        for timer in (self._late, self._idle, self._turn):
            timer.stop()
        self._child = None
        for child in self.findChildren(QProcess):
            child.blockSignals(True)
            child.kill()
            child.waitForFinished(TIMEOUT_MS)

    def _timer(self, interval: int, callback: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(interval)
        timer.timeout.connect(callback)
        return timer

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
        # That it does not start may be said before `start` returns.
        child.errorOccurred.connect(partial(self._on_error, child), Qt.ConnectionType.QueuedConnection)
        program, *words = worker_command("colouring")
        child.start(program, words)
        self.started += 1
        return child

    def _read(self) -> None:
        """One message; what else happens in the window comes before the next."""
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
        child = self._child
        # When something has come that nobody has read yet, it was the window that stood still.
        if self._turn.isActive() or (child and child.waitForReadyRead(0)):
            self._late.start()
        elif child and child is self._child:
            self._end(child)
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
        """What is being read stays plain; `count`: because it took too long."""
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
        """It ends by itself when it hears nothing more."""
        if self._child:
            self._child.closeWriteChannel()
            self._child = None

    def _end(self, child: QProcess) -> None:
        self._child = None
        child.kill()


def _hit_cpu_limit(child: QProcess) -> bool:
    """Whether the system ended it at its limit: of a process that a signal ended, Qt says which."""
    crashed = child.exitStatus() is QProcess.ExitStatus.CrashExit
    return sys.platform != "win32" and crashed and child.exitCode() == signal.SIGPROF


def _digest_of(code: HighlightRequest) -> bytes:
    """Short, and of no other code: what is refused may be as long as a book."""
    return blake2b(f"{code.language}\0{code.text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


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
