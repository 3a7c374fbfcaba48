"""What MCP servers put into a message that is being written."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PendingResource:
    """A text that was read of a server; it goes with the message as a block of its own."""

    server: str
    title: str
    uri: str
    text: str
    server_id: str = ""

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text) if self.text.isascii() else len(self.text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class PictureOf:
    """A picture of a server, as it came."""

    server: str
    title: str
    data: bytes
    server_id: str = ""


@dataclass(frozen=True, slots=True)
class WordsOf:
    """In the text that is being written stand words of this server: a prompt of its that was inserted."""

    server: str
    server_id: str = ""
