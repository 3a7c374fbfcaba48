"""Text without what nobody sees: control characters, and those that hide words or turn them around."""

import re

# Also what text in Unicode's tags and selectors is smuggled in.
_INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_MAYBE_INVISIBLE = re.compile(f"[{_INVISIBLE}\u200c\u200d\ufe00-\ufe0f]")
# Joiners, and one selector, stay where scripts and emoji need them.
_HIDDEN = re.compile(
    f"[{_INVISIBLE}]|[\ufe00-\ufe0f]{{2,}}|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200c\u200d])"
)


def strip_invisible(text: str) -> tuple[str, int]:
    """The text with every line end as \\n, and how many hidden characters were taken out of it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    before = len(text)
    if _MAYBE_INVISIBLE.search(text):
        # Taking one out may bring others together.
        while (shorter := _HIDDEN.sub("", text)) != text:
            text = shorter
    return text, before - len(text)
