"""Read the text of a PDF, in the worker process: a native library takes apart the file of a stranger."""

import base64
from dataclasses import dataclass
from typing import Any, Literal

Problem = Literal["password", "damaged", "long", "empty"]
# What PDFium writes for a hyphen at the end of a line.
_HYPHENS = str.maketrans({"\x02": "-", "\ufffe": "-", "\0": None})


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of all pages, each under its number, also of those without text; or why there is none."""

    text: str = ""
    problem: Problem | None = None


def prepare() -> None:
    """Import everything that reading needs: the library imports some of it when it meets a page."""
    from pypdfium2 import PdfDocument  # pyright: ignore[reportMissingTypeStubs]  # ships without types

    document: Any = PdfDocument.new()
    document.new_page(9, 9)
    _read_pages(document, 0)
    # Of its texts.
    "".encode("utf-16-le")


def read_pdf(data: str, max_length: int) -> PdfText:
    """Return the text of a PDF in base64. More than `max_length` characters are a problem."""
    from pypdfium2 import PdfDocument, PdfiumError  # pyright: ignore[reportMissingTypeStubs]  # ships without types
    from pypdfium2.raw import FPDF_ERR_PASSWORD  # pyright: ignore[reportMissingTypeStubs]

    try:
        return _read_pages(PdfDocument(base64.b64decode(data)), max_length)
    except PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == FPDF_ERR_PASSWORD
        return PdfText(problem="password" if is_locked else "damaged")


def _read_pages(document: Any, max_length: int) -> PdfText:
    pages: list[str] = []
    length = 0
    next_number = 1
    for number in range(1, len(document) + 1):
        page = document[number - 1]
        text: str = page.get_textpage().get_text_bounded().translate(_HYPHENS).replace("\r\n", "\n").strip()
        page.close()
        if text:
            pages += _note_on_pages(next_number, number - 1)
            pages.append(f"[Page {number}]\n{text}")
            length += len(pages[-1])
            next_number = number + 1
        if length > max_length:
            return PdfText(problem="long")
    if not pages:
        return PdfText(problem="empty")
    return PdfText("\n\n".join((*pages, *_note_on_pages(next_number, len(document)))))


def _note_on_pages(first: int, last: int) -> tuple[str, ...]:
    """Say of pages without text that they are there: who reads the others would not know that something is missing."""
    if first > last:
        return ()
    numbers = f"Page {first}" if first == last else f"Pages {first} to {last}"
    return (f"[{numbers}: no text, perhaps a picture]",)
