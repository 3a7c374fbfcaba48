"""The pictures of the gallery: one function each, registered with `@screen`. Add a module *_screens.py for more."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from PySide6.QtCore import QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from tests.gallery.desk import Desk, desk, until
from ui.style.theme import ThemeSource

Build = Callable[[ThemeSource], QWidget | AbstractAsyncContextManager[QWidget]]
Act = Callable[[Desk], Awaitable[None]]


@dataclass(frozen=True)
class Screen:
    """What to build, and how large the window is, in device-independent pixels."""

    name: str
    build: Build
    width: int
    height: int


SCREENS: dict[str, Screen] = {}
ROOM: tuple[int, int] | None = None
"""The size of the screen that the windows are to fit into, where that is a small one."""


def size_of(screen: Screen) -> QSize:
    """Return the size of its window."""
    wanted = QSize(screen.width, screen.height)
    return wanted if ROOM is None else wanted.boundedTo(QSize(*ROOM))


def screen(name: str, width: int = 1100, height: int = 760) -> Callable[[Build], Build]:
    """Register a function that builds a window; the theme source is in use and of the right colour.

    It runs inside the same event loop as the program's. The picture is taken when the window stopped changing.
    """

    def register(build: Build) -> Build:
        if name in SCREENS:
            raise ValueError(f"two screens are called {name!r}")
        SCREENS[name] = Screen(name, build, width, height)
        return build

    return register


async def placed(window: QWidget) -> None:
    """Wait until the window manager has put a window in its place: dialogs before that lie over none."""
    before = None

    def stands() -> bool:
        nonlocal before
        last, before = before, window.geometry()
        handle = window.windowHandle()
        framed = QGuiApplication.platformName() != "xcb" or not handle.frameMargins().isNull()
        return handle.isExposed() and framed and last == before

    await until(stands)


def scene(
    name: str, width: int = 1180, height: int = 800, *, connected: bool = True, listed: bool = True
) -> Callable[[Act], Act]:
    """Register a coroutine that does something at the real window, which is shown by then; see `desk`."""

    def register(act: Act) -> Act:
        @asynccontextmanager
        async def build(themes: ThemeSource) -> AsyncIterator[QWidget]:
            async with desk(themes, connected=connected, listed=listed) as made:
                made.window.resize(size_of(SCREENS[name]))
                made.window.show()
                await placed(made.window)
                await act(made)
                yield made.window

        screen(name, width, height)(build)
        return act

    return register
