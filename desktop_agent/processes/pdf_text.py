"""The text of a PDF that a person attaches or a tool reads."""

import base64
from contextlib import closing
from importlib.util import find_spec

from desktop_agent.processes.pdf_process import PdfText, Problem
from desktop_agent.processes.worker import Worker, WorkerFailed
from desktop_agent.processes.worker_process import WorkerLimits
from desktop_agent.types.errors import ExtraMissing, Sentence, WrongUse

MAX_PDF_BYTES = 30_000_000
PDF_START = b"%PDF-"
_LIMITS = WorkerLimits(memory=2_000_000_000, seconds=60.0, reads_files=False, calls_libraries=True)
_TIMEOUT = 90.0
_COPY_TEXT = Sentence("Copy its text into the message, or attach pictures of its pages.")
_ATTACH_PICTURES = Sentence("Attach pictures of its pages.")


def read_pdf_text(data: bytes, name: str, max_length: int) -> str:
    """Return the text of all pages, each under its number; blocks up to a minute.

    `name` is for sentences. Raises WrongUse for a PDF that is damaged, locked, too large or without text, and
    ExtraMissing where the library that reads PDFs is not installed.
    """
    with closing(_make_worker()) as worker:
        return _ask(worker, data, name, max_length)


async def read_pdf_text_async(data: bytes, name: str, max_length: int) -> str:
    """Return and raise as `read_pdf_text` does. A cancel ends the worker process."""
    worker = _make_worker()
    return await worker.run(lambda: _ask(worker, data, name, max_length))


def _make_worker() -> Worker[PdfText]:
    return Worker("desktop_agent.processes.pdf_process:read_pdf", list[PdfText], _LIMITS, timeout=_TIMEOUT)


def _ask(worker: Worker[PdfText], data: bytes, name: str, max_length: int) -> str:
    words = {"name": name}
    if find_spec("pypdfium2") is None:
        raise ExtraMissing.of("Reading PDFs", "window")
    if len(data) > MAX_PDF_BYTES:
        raise WrongUse(Sentence("“{name}” is larger than {limit}.", {**words, "limit": "30 MB"}), _COPY_TEXT)
    try:
        answer = worker.ask(base64.b64encode(data).decode("ascii"), max_length)
    except WorkerFailed:
        answer = PdfText(problem="damaged")
    if answer.problem is not None:
        raise _error(answer.problem, words)
    return answer.text


def _error(problem: Problem, words: dict[str, str]) -> WrongUse:
    match problem:
        case "password":
            remedy = Sentence("Save a copy without the password, and attach that.")
            return WrongUse(Sentence("“{name}” is protected by a password.", words), remedy)
        case "empty":
            return WrongUse(Sentence("“{name}” has no text: its pages are pictures.", words), _ATTACH_PICTURES)
        case "long":
            return WrongUse(Sentence("The text of “{name}” is too long to be attached.", words), _COPY_TEXT)
        case "damaged":
            return WrongUse(Sentence("“{name}” is a PDF that cannot be read.", words), _COPY_TEXT)
