"""What a server says beside its answers: what it writes to its error stream, and what it reports."""

import re
from collections import deque
from collections.abc import Callable

from desktop_agent.vocabulary.mcp.log import McpLogLine
from desktop_agent.vocabulary.messages import now

MAX_LINES = 1_000
MAX_LOG_LINE_LENGTH = 2_000
_MAX_SECRETS = 200
_MAX_LAST_LINE_LENGTH = 300


class ServerLog:
    """The last lines. A secret that was given to the server is taken out, should it repeat it.

    Of the last start alone: `stray` is a line of its output that is no message, `exit_code` how it ended by itself.
    """

    def __init__(self, listener: Callable[[McpLogLine], None] = lambda _: None) -> None:
        self._lines: deque[McpLogLine] = deque(maxlen=MAX_LINES)
        self._secrets: tuple[str, ...] = ()
        self._secret_pattern: re.Pattern[str] | None = None
        self._listener = listener
        self._last_line = ""
        self.stray_output = ""
        self.exit_code: int | None = None

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def lines(self) -> tuple[McpLogLine, ...]:
        """Oldest first."""
        return tuple(self._lines)

    @property
    def last_line(self) -> str:
        """The last line since the start that says something, for a sentence about why a server is not there."""
        return self._last_line[:_MAX_LAST_LINE_LENGTH]

    def start(self) -> None:
        """It starts: what it said before is not why it fails now."""
        self._last_line, self.stray_output, self.exit_code = "", "", None

    def add_stray_output(self, text: str) -> None:
        """Take a line of the output that is no message."""
        self.add(text)
        self.stray_output = self._last_line[:_MAX_LAST_LINE_LENGTH]

    def add_secrets(self, secrets: tuple[str, ...]) -> None:
        """Take these out too of what comes from now on. Short ones would hide common words."""
        known = dict.fromkeys((*secrets, *self._secrets))
        self._secrets = tuple(each for each in known if len(each) >= 6)[:_MAX_SECRETS]
        # The longest first: one that begins with another is hidden whole.
        longest_first = sorted(self._secrets, key=len, reverse=True)
        self._secret_pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def add(self, text: str, level: str = "") -> None:
        """Take a line, cut to a length that can be shown."""
        kept = self.redact(text, MAX_LOG_LINE_LENGTH).encode("utf-8", "replace").decode()
        line = McpLogLine(now(), level, "".join(each if each.isprintable() or each == "\t" else "�" for each in kept))
        self._lines.append(line)
        self._last_line = line.text if line.text.strip() else self._last_line
        self._listener(line)

    def redact(self, text: str, most: int | None = None) -> str:
        """The text without the secrets, or so many of its characters: no secret is cut before it is found."""
        if self._secret_pattern is None:
            return text[:most]
        most = len(text) if most is None else most
        longest = max(map(len, self._secrets))
        said: list[str] = []
        length, at = 0, 0
        while at < len(text) and length < most:
            left = most - length
            # No further than what can be shown: a line may be very long.
            found = self._secret_pattern.search(text, at, at + left + longest)
            shown = f"{text[at : found.start()]}•••" if found else text[at : at + left]
            said.append(shown)
            length, at = length + len(shown), found.end() if found else len(text)
        return "".join(said)[:most]
