"""What the bytes of a page are: HTML, text or neither; and in which encoding."""

import codecs
import re
from email.message import Message
from typing import Literal

from desktop_agent.tools.web.fetching import Page
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

ContentKind = Literal["html", "text"]

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {
        *(
            "application/json",
            "application/xml",
            "application/javascript",
            "application/ecmascript",
            "application/toml",
        ),
        *("application/yaml", "application/x-yaml", "application/x-ndjson", "application/x-sh", "application/sql"),
        *("application/x-javascript", "application/graphql", "application/jsonlines", "application/x-tex"),
    }
)
# Servers say this of what they do not know; its content decides.
_UNKNOWN = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown"})
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Names of Python's codecs that are encodings of the web (WHATWG Encoding). Others, such as UTF-7, hide things.
_ENCODINGS = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "shift_jis"),
        *("cp932", "euc_kr", "cp949", "iso2022_jp", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp866", "cp874"),
        *(f"cp125{number}" for number in range(9)),
        *(f"iso8859-{number}" for number in (*range(2, 9), 10, 11, 13, 14, 15, 16)),
    }
)
_TO_WINDOWS = {"ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gbk", "iso8859-9": "cp1254", "tis-620": "cp874"}
_META_LENGTH = 4096
_META = re.compile(rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.+-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_:.+-]{1,40})")
# Atomic: a comment ends where it ends, however many follow.
_BEGINS_HTML = re.compile(
    r"\s*+(?:<\?xml[^>]*+>\s*+)?(?>(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)


def decode_page(page: Page) -> tuple[ContentKind, str]:
    """What it is, and its characters. Raises ToolFailed for what is no text."""
    media_type, charset = _parse_content_type(page.content_type)
    is_html = media_type in _HTML
    is_text = media_type.startswith("text/") or media_type in _TEXT or media_type.endswith(("+json", "+xml"))
    if not (is_html or is_text or media_type in _UNKNOWN):
        raise _not_text(page, media_type)
    text = _decode(page.data, charset)
    if media_type in _UNKNOWN:
        is_html = _BEGINS_HTML.match(text[:5000]) is not None
        is_text = is_html or _is_whole(page.data, text)
    if "\0" in text or not (is_html or is_text):
        raise _not_text(page, media_type)
    return ("html" if is_html else "text"), text


def _parse_content_type(content_type: str) -> tuple[str, str]:
    message = Message()
    message["content-type"] = " ".join(content_type[:500].split())
    charset = message.get_param("charset", "")
    # A header without a slash is read as text/plain by the library.
    media_type = message.get_content_type() if "/" in content_type else ""
    return media_type, charset if isinstance(charset, str) else ""


def _decode(data: bytes, charset: str) -> str:
    """By byte order mark, header, what the page says of itself; else UTF-8, else as browsers guess in the West."""
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    found = _META.search(data[:_META_LENGTH]) or _XML.match(data[:_META_LENGTH])
    # A page that can say it in ASCII is not in UTF-16 (WHATWG HTML, "prescan").
    said = _known_encoding(found[1].decode("ascii")) if found else None
    name = _known_encoding(charset) or ("utf-8" if said and said.startswith("utf-16") else said)
    if name is not None:
        return data.decode(name, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _is_whole(data: bytes, text: str) -> bool:
    """Whether it surely is text: its encoding is marked or UTF-8, and nothing in it had to be replaced."""
    return "\ufffd" not in text and (
        data.startswith(tuple(mark for mark, _ in _BYTE_ORDER_MARKS)) or data == text.encode()
    )


def _known_encoding(label: str) -> str | None:
    try:
        name = codecs.lookup(label.strip("\"' ")).name
    except (LookupError, ValueError):
        return None
    name = _TO_WINDOWS.get(name, name)
    return name if name in _ENCODINGS else None


def _not_text(page: Page, media_type: str) -> ToolFailed:
    values = {"host": page.address.host, "what": media_type or "not named", "size": f"{len(page.data):,}"}
    what = "What “{host}” has there is no text: its type is {what}, its size {size} bytes."
    return ToolFailed(Sentence(what, values), "Look for a page with text.")
