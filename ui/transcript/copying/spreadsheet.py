"""A table as comma-separated values for a spreadsheet."""

import csv
import io
import re
from collections.abc import Sequence

from desktop_agent.vocabulary.text.hidden_characters import DECEPTIVE_CHARACTERS

# What a spreadsheet takes for a formula (OWASP, CSV Injection); a plain number is none. Some skip what nobody sees.
_INVISIBLE = rf"[\s\u00ad{DECEPTIVE_CHARACTERS}]"
_FORMULA = re.compile(rf"{_INVISIBLE}*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:\d[\d.,' \u00a0]*|[.,]\d+)(?:[eE][+-]?\d+)?\s*%?")


def table_to_csv(rows: Sequence[Sequence[str]]) -> str:
    """Quoted as RFC 4180 says. A cell that a spreadsheet would run gets an apostrophe before it, and is text."""
    written = io.StringIO()
    csv.writer(written).writerows([[_escape_formula(cell) for cell in row] for row in rows])
    return written.getvalue()


def _escape_formula(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell
