"""What a program says: told as it comes, kept from the beginning and the end."""

import codecs
from collections import deque
from collections.abc import Callable


class OutputBuffer:
    """Text out of bytes in UTF-8; what is none becomes a replacement character.

    `limit` is how many characters are told and how many are kept: half of them from the beginning, half from the end.
    """

    def __init__(self, limit: int, send: Callable[[str], None]) -> None:
        self.failure: Exception | None = None
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._on_text = send
        self._limit = self._unreported = limit
        self._head_room = limit - limit // 2
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._length = self._tail_length = 0

    @property
    def is_full(self) -> bool:
        """Whether more came than is kept."""
        return self._length > self._limit

    def add(self, data: bytes, *, final: bool = False) -> None:
        """Take what came. What the listener raises is in `failure`, and it is told no more."""
        text = self._decode(data, final)
        if not text:
            return
        self._append(text)
        told, self._unreported = text[: self._unreported], max(self._unreported - len(text), 0)
        if told and self.failure is None:
            try:
                self._on_text(told)
            except Exception as error:  # noqa: BLE001 - raised again by whoever waits for the program
                self.failure = error

    def excerpt(self) -> tuple[str, bool]:
        """The text, and whether something is missing from its middle."""
        head, tail = "".join(self._head), "".join(self._tail)
        if not self.is_full:
            return head + tail, False
        tail_room = self._limit // 2
        tail = tail[len(tail) - tail_room :]
        missing = self._length - len(head) - len(tail)
        return f"{head}\n[{missing:,} characters are left out here.]\n{tail}", True

    def _append(self, text: str) -> None:
        room = max(self._head_room - self._length, 0)
        self._length += len(text)
        if room:
            self._head.append(text[:room])
        if text[room:]:
            self._tail.append(text[room:])
            self._tail_length += len(text) - room
        # Whole pieces only: cutting each time would copy the tail for every byte of a slow program.
        while self._tail and self._tail_length - len(self._tail[0]) >= self._limit // 2:
            self._tail_length -= len(self._tail.popleft())
