"""What is put into a message that is being written, and what is still on its way into it."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from desktop_agent.vocabulary.errors import AgentError
from ui.composer.pictures import PendingPicture

if TYPE_CHECKING:
    import asyncio


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
class ServerPicture:
    """A picture of a server, as it came."""

    server: str
    title: str
    data: bytes
    server_id: str = ""


@dataclass(frozen=True, slots=True)
class PromptSource:
    """In the text that is being written stand words of this server: a prompt of its that was inserted."""

    server: str
    server_id: str = ""


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What arrived, and why something did not."""

    items: Sequence[PendingPicture | PendingResource] = ()
    problems: Sequence[AgentError] = ()


class AttachmentFetch:
    """Fetches once, for whoever waits; it goes on where the chip that showed it is gone."""

    def __init__(
        self, name: str, fetch: Callable[[], Coroutine[Any, Any, FetchResult]], *, is_picture: bool = False
    ) -> None:
        self.name = name
        self.is_picture = is_picture
        self._fetch = fetch
        self._task: asyncio.Task[FetchResult] | None = None

    async def result(self) -> FetchResult:
        """Wait for it, and begin where that has not been done yet. Raises also what nobody expects of fetching."""
        # Late: the window is drawn before there is a loop.
        import asyncio

        if self._task is None:
            self._task = asyncio.create_task(self._fetch())
        return await asyncio.shield(self._task)

    def cancel(self) -> None:
        """End it: nobody wants it any more."""
        if self._task is not None:
            self._task.cancel()
