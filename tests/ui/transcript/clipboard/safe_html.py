"""Reads copied HTML, and fails on whatever could do something where it is pasted."""

from html.parser import HTMLParser

VOID = {"br", "hr", "meta"}
ALLOWED = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "table", "tr", "th"),
    *("td", "div", "sup", "strong", "em", "s", "a", *VOID),
}
ATTRIBUTES = {"a": {"href"}, "ol": {"start"}, "code": {"class"}, "td": {"align"}, "th": {"align"}, "meta": {"charset"}}


class SafeReader(HTMLParser):
    """`open` are the elements that were not closed, `words` the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words = ""

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED
        assert {name for name, _ in attrs} <= ATTRIBUTES.get(tag, set())
        for name, value in attrs:
            if name == "href":
                assert value.startswith(("https://", "http://", "mailto:"))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data
