"""The text of PDFs that a person attaches, read in a worker process."""

import pytest

from desktop_agent.processes import pdf_text
from desktop_agent.processes.pdf_text import read_pdf_text
from desktop_agent.processes.worker_process import WorkerLimits
from desktop_agent.types.errors import ExtraMissing, WrongUse
from tests.fakes.pdf import LOCKED_PDF, pdf_of


def refusal(data: bytes, max_length: int = 1_000) -> str:
    with pytest.raises(WrongUse) as refused:
        read_pdf_text(data, "plan.pdf", max_length)
    assert str(refused.value.remedy)
    return str(refused.value)


def test_pages_stand_under_their_numbers_and_those_without_text_are_named() -> None:
    text = read_pdf_text(pdf_of("", "Hello there", "", "", "The end", ""), "plan.pdf", 1000)
    assert text.split("\n\n") == [
        "[Page 1: no text, perhaps a picture]",
        "[Page 2]\nHello there",
        "[Pages 3 to 4: no text, perhaps a picture]",
        "[Page 5]\nThe end",
        "[Page 6: no text, perhaps a picture]",
    ]


def test_what_has_no_text_to_attach_says_why() -> None:
    assert refusal(pdf_of("")) == "“plan.pdf” has no text: its pages are pictures."
    assert refusal(LOCKED_PDF) == "“plan.pdf” is protected by a password."
    assert refusal(pdf_of("Hello"), 5) == "The text of “plan.pdf” is too long to be attached."
    assert refusal(pdf_of("Hello")[:400]) == "“plan.pdf” is a PDF that cannot be read."
    assert refusal(b"%PDF-1.7\n%\xb5\xed") == "“plan.pdf” is a PDF that cannot be read."
    assert refusal(b"%PDF-1.4 " + bytes(30_000_000)) == "“plan.pdf” is larger than 30 MB."


def test_without_the_library_that_reads_them_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "find_spec", lambda _name: None)
    with pytest.raises(ExtraMissing, match="Reading PDFs needs parts that are not installed") as missing:
        read_pdf_text(pdf_of("Hello"), "plan.pdf", 1_000)
    assert "desktop-agent[window]" in str(missing.value.remedy)


def test_one_that_takes_too_much_is_a_damaged_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "_LIMITS", WorkerLimits(memory=1_000_000, seconds=60.0, reads_files=False))
    assert refusal(pdf_of("Hello")) == "“plan.pdf” is a PDF that cannot be read."
