"""What a server says beside its answers: what it writes to its error stream, and what it reports."""

from collections import deque
from collections.abc import Callable

from desktop_agent.vocabulary.mcp.log import LogLine
from desktop_agent.vocabulary.messages import now

MOST_LINES = 1_000
LONGEST_LINE = 2_000
_MOST_SECRETS = 200


class ServerLog:
    """The last lines. A secret that was given to the server is taken out, should it repeat it."""

    def __init__(self, listener: Callable[[LogLine], None] = lambda _: None) -> None:
        self._lines: deque[LogLine] = deque(maxlen=MOST_LINES)
        self._secrets: tuple[str, ...] = ()
        self._listener = listener

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """Oldest first."""
        return tuple(self._lines)

    @property
    def last_words(self) -> str:
        """The last line that says something, for a sentence about why a server is not there."""
        return next((line.text for line in reversed(self._lines) if line.text.strip()), "")[:300]

    def hide(self, secrets: tuple[str, ...]) -> None:
        """Take these out too of what comes from now on. Short ones would hide common words."""
        known = dict.fromkeys((*secrets, *self._secrets))
        self._secrets = tuple(each for each in known if len(each) >= 6)[:_MOST_SECRETS]

    def add(self, text: str, level: str = "") -> None:
        """Take a line, cut to a length that can be shown."""
        kept = self.hidden(text[: LONGEST_LINE * 2])[:LONGEST_LINE].encode("utf-8", "replace").decode()
        line = LogLine(now(), level, "".join(each if each.isprintable() or each == "\t" else "�" for each in kept))
        self._lines.append(line)
        self._listener(line)

    def hidden(self, text: str) -> str:
        """The text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "•••")
        return text
