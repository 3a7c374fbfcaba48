"""A PDF of several pages, light in a dark window."""

import re

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtGui import QPageSize, QTextDocument

from desktop_agent.exchange.print_export import PrintedPart
from desktop_agent.types.errors import StorageFailed
from ui.bridge.pdf_pages import _last_line_end, open_pdf, page_size


def test_parts_fill_one_page_after_the_other(qapp, tmp_path):
    path = tmp_path / "a.pdf"
    with open_pdf(path, "A title") as pages:
        for number in range(60):
            pages.add(PrintedPart(f"<h3>Part {number}</h3>" + "<p>some words</p>" * 5, begins_turn=True))
        count = pages._page
        assert not path.exists()
    data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", data)) == count > 5


def test_a_line_higher_than_a_page_does_not_go_on_for_ever(qapp, tmp_path):
    with open_pdf(tmp_path / "a.pdf", "A title") as pages:
        pages.add(PrintedPart('<p style="font-size: 3000pt">x</p>'))
        assert pages._page > 1


def test_what_fails_leaves_no_file(qapp, tmp_path):
    with pytest.raises(AttributeError), open_pdf(tmp_path / "a.pdf", "A title") as pages:
        pages.add(None)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageFailed, match="cannot be written"), open_pdf(tmp_path / "none" / "a.pdf", "A title"):
        pass


@pytest.mark.parametrize("head", ["<h3>two</h3>", '<table border="1"><tr><td>two</td></tr></table>'])
def test_a_page_ends_between_lines_and_never_below_a_heading(qapp, head):
    document = QTextDocument()
    document.setHtml(f"<p>one</p>{head}<p>three</p>")
    document.setTextWidth(400)
    layout = document.documentLayout()
    first, last = (layout.blockBoundingRect(block) for block in (document.firstBlock(), document.lastBlock()))
    assert _last_line_end(document, 0, last.bottom() - 2) == pytest.approx(first.bottom(), abs=2)
    assert _last_line_end(document, 0, 3) is None


@pytest.mark.parametrize(
    ("locale", "size"), [("de_DE", "A4"), ("en_US", "Letter"), ("es_MX", "Letter"), ("zh_CN", "A4")]
)
def test_the_paper_is_that_of_the_country(locale, size):
    assert page_size(QLocale(locale)).id() == getattr(QPageSize.PageSizeId, size)
