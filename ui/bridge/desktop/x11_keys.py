"""Keys of X11 that come to this program while another one is in front: XGrabKey, through libxcb, which Qt has loaded.

The calls are those of xproto.h; why no package makes them is in docs/adr/0029-keys-everywhere.md.
"""

import asyncio
import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier, Signal

from desktop_agent.processes.worker_threads import runs_to_its_end
from desktop_agent.types.errors import Sentence
from ui.bridge.desktop.key_names import KeyCombination, KeysUnavailable

_KEY_PRESS, _MAPPING_NOTIFY = 2, 34
_ASYNC = 1
_ANY_KEY, _ANY_MODIFIER = 0, 0x8000
_SHIFT, _LOCK, _CONTROL = 1, 2, 4
_KEYSYMS = {"ALT": (0xFFE9, 0xFFEA), "LOGO": (0xFFEB, 0xFFEC), "locks": (0xFF7F, 0xFF14)}
"""Left and right Alt and Super; Num_Lock and Scroll_Lock, with which the keys have to work too."""


class _Cookie(ctypes.Structure):
    _fields_ = (("sequence", ctypes.c_uint),)


class _Screens(ctypes.Structure):
    """An iterator over screens; the number of the root window comes first in each."""

    _fields_ = (("data", ctypes.POINTER(ctypes.c_uint32)), ("rem", ctypes.c_int), ("index", ctypes.c_int))


class _Event(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_uint8), ("detail", ctypes.c_uint8), ("sequence", ctypes.c_uint16))


_MIN_KEYCODE = 34
"""The offset of min_keycode in xcb_setup_t; max_keycode follows it."""


@cache
def _xcb() -> Any:
    """Load the library and declare what is called. Raises OSError."""
    xcb = ctypes.CDLL("libxcb.so.1")
    pointer, byte, word, long = ctypes.c_void_p, ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32
    signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "connect": (pointer, (ctypes.c_char_p, ctypes.POINTER(ctypes.c_int))),
        "connection_has_error": (ctypes.c_int, (pointer,)),
        "disconnect": (None, (pointer,)),
        "get_file_descriptor": (ctypes.c_int, (pointer,)),
        "get_setup": (ctypes.POINTER(byte), (pointer,)),
        "setup_roots_iterator": (_Screens, (pointer,)),
        "screen_next": (None, (ctypes.POINTER(_Screens),)),
        "get_keyboard_mapping": (_Cookie, (pointer, byte, byte)),
        "get_keyboard_mapping_reply": (ctypes.POINTER(byte), (pointer, _Cookie, pointer)),
        "get_keyboard_mapping_keysyms": (ctypes.POINTER(long), (pointer,)),
        "get_modifier_mapping": (_Cookie, (pointer,)),
        "get_modifier_mapping_reply": (ctypes.POINTER(byte), (pointer, _Cookie, pointer)),
        "get_modifier_mapping_keycodes": (ctypes.POINTER(byte), (pointer,)),
        "grab_key_checked": (_Cookie, (pointer, byte, long, word, byte, byte, byte)),
        "ungrab_key": (_Cookie, (pointer, byte, long, word)),
        "request_check": (pointer, (pointer, _Cookie)),
        "poll_for_event": (ctypes.POINTER(_Event), (pointer,)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(xcb, f"xcb_{name}")
        function.restype, function.argtypes = result, arguments
    return xcb


def _free(memory: Any) -> None:
    ctypes.CDLL(None).free(ctypes.cast(memory, ctypes.c_void_p))


class _Connection:
    """A connection to the X server that holds one grab. All methods but `events` block."""

    def __init__(self) -> None:
        self._xcb = _xcb()
        self._grabbed: set[tuple[int, int]] = set()
        screen = ctypes.c_int()
        self._pointer = self._xcb.xcb_connect(None, ctypes.byref(screen))
        if self._xcb.xcb_connection_has_error(self._pointer):
            self.close()
            raise OSError("no connection to the X server")
        setup = self._xcb.xcb_get_setup(self._pointer)
        screens = self._xcb.xcb_setup_roots_iterator(setup)
        for _ in range(screen.value):
            self._xcb.xcb_screen_next(ctypes.byref(screens))
        self._root = int(screens.data[0])
        self._first, self._last = int(setup[_MIN_KEYCODE]), int(setup[_MIN_KEYCODE + 1])

    @property
    def descriptor(self) -> int:
        return int(self._xcb.xcb_get_file_descriptor(self._pointer))

    def close(self) -> None:
        """Leave the server, which releases the keys."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None:
            self._xcb.xcb_disconnect(pointer)

    def grab(self, keys: KeyCombination) -> None:
        """Grab the keys, whichever locks are on; nothing changes if they are grabbed. Raises KeysUnavailable."""
        targets = self._targets(keys)
        if targets == self._grabbed:
            return
        self._xcb.xcb_ungrab_key(self._pointer, _ANY_KEY, self._root, _ANY_MODIFIER)
        self._grabbed = targets
        grab = self._xcb.xcb_grab_key_checked
        cookies = [grab(self._pointer, 1, self._root, mask, code, _ASYNC, _ASYNC) for code, mask in targets]
        errors = [error for cookie in cookies if (error := self._xcb.xcb_request_check(self._pointer, cookie))]
        for error in errors:
            _free(error)
        if errors:
            raise KeysUnavailable(
                Sentence("Another program already uses {keys}.", {"keys": keys.title}),
                "Choose other keys, or take these from that program.",
            )

    def _targets(self, keys: KeyCombination) -> set[tuple[int, int]]:
        """Return the keycodes and masks of modifiers on the keyboard as it is now."""
        keysyms = self._keysyms()
        codes = [code for code, known in keysyms.items() if known[:1] == [keys.keysym]]
        # A character that needs Shift is the second keysym of its key.
        codes = codes or [code for code, known in keysyms.items() if keys.keysym in known[:2]]
        if not codes:
            raise KeysUnavailable(Sentence("The keyboard has no {keys}.", {"keys": keys.title}))
        modifiers, locks = self._modifiers(keys.modifiers, keysyms)
        return {(code, modifiers | lock) for code in codes for lock in locks}

    def events(self) -> Iterator[int]:
        """Yield the kinds of the events that have come. Raises OSError when the server is gone."""
        while event := self._xcb.xcb_poll_for_event(self._pointer):
            kind = int(event.contents.kind) & 0x7F
            _free(event)
            yield kind
        if self._xcb.xcb_connection_has_error(self._pointer):
            raise OSError("the X server is gone")

    def _keysyms(self) -> dict[int, list[int]]:
        """Return the keysyms of each keycode: plain, with Shift, and others."""
        count = self._last - self._first + 1
        cookie = self._xcb.xcb_get_keyboard_mapping(self._pointer, self._first, count)
        reply = self._reply("get_keyboard_mapping", cookie)
        width = int(reply[1])
        flat = self._xcb.xcb_get_keyboard_mapping_keysyms(reply)[: count * width]
        _free(reply)
        return {self._first + row: flat[row * width : (row + 1) * width] for row in range(count)}

    def _modifiers(self, words: Sequence[str], keysyms: dict[int, list[int]]) -> tuple[int, set[int]]:
        """Return the mask of the modifiers, and the masks of all combinations of locks."""
        reply = self._reply("get_modifier_mapping", self._xcb.xcb_get_modifier_mapping(self._pointer))
        width = int(reply[1])
        codes = self._xcb.xcb_get_modifier_mapping_keycodes(reply)[: 8 * width]
        _free(reply)
        rows = [codes[row * width : (row + 1) * width] for row in range(8)]

        def masks(word: str) -> list[int]:
            modifier_keysyms = set(_KEYSYMS[word])
            return [
                1 << row
                for row, keys in enumerate(rows)
                if any(modifier_keysyms & set(keysyms.get(code, ())) for code in keys)
            ]

        mask = _SHIFT * ("SHIFT" in words) | _CONTROL * ("CTRL" in words)
        for word in ("ALT", "LOGO"):
            if word in words:
                mask |= next(iter(masks(word)), 8 if word == "ALT" else 64)
        locks = {_LOCK, *masks("locks")}
        return mask, {sum(on) for number in range(len(locks) + 1) for on in combinations(locks, number)}

    def _reply(self, call: str, cookie: _Cookie) -> Any:
        reply = getattr(self._xcb, f"xcb_{call}_reply")(self._pointer, cookie, None)
        if not reply:
            raise OSError("the X server does not answer")
        return reply


class X11Keys(QObject):
    """One combination of keys on the X server of this program."""

    pressed = Signal()
    layout_changed = Signal()
    """The keyboard has another layout: call `adapt`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._connection: _Connection | None = None
        self._notifier: QSocketNotifier | None = None
        self._keys: KeyCombination | None = None
        # A connection must not be closed while a thread uses it; nor be lost with its grab when a caller is cancelled.
        self._lock = asyncio.Lock()

    @runs_to_its_end
    async def grab(self, keys: KeyCombination) -> str:
        """Grab these keys in place of earlier ones; return "". Raises KeysUnavailable."""
        async with self._lock:
            self._close()
            connection = await asyncio.to_thread(_grab, keys)
            self._keys, self._connection = keys, connection
        self._notifier = QSocketNotifier(connection.descriptor, QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._read)
        # Events that came with a reply do not activate the notifier.
        self._read()
        return ""

    @runs_to_its_end
    async def adapt(self) -> None:
        """Find the keys on the layout that the keyboard has now. Raises KeysUnavailable."""
        async with self._lock:
            if self._connection is None or self._keys is None:
                return
            try:
                await asyncio.to_thread(self._connection.grab, self._keys)
            except OSError as error:
                raise _no_server() from error
        self._read()

    async def release(self) -> None:
        """Release the keys."""
        async with self._lock:
            self._close()

    def _close(self) -> None:
        notifier, self._notifier = self._notifier, None
        connection, self._connection = self._connection, None
        if notifier is not None:
            notifier.setEnabled(False)
            notifier.deleteLater()
        if connection is not None:
            connection.close()

    def _read(self) -> None:
        if self._connection is None:
            return
        try:
            kinds = list(self._connection.events())
        except OSError:
            # The server has ended, and Qt ends the program.
            if self._notifier is not None:
                self._notifier.setEnabled(False)
            return
        if _KEY_PRESS in kinds:
            self.pressed.emit()
        if _MAPPING_NOTIFY in kinds:
            self.layout_changed.emit()


def _grab(keys: KeyCombination) -> _Connection:
    try:
        connection = _Connection()
    except OSError as error:
        raise _no_server() from error
    try:
        connection.grab(keys)
    except OSError as error:
        connection.close()
        raise _no_server() from error
    except KeysUnavailable:
        connection.close()
        raise
    return connection


def _no_server() -> KeysUnavailable:
    return KeysUnavailable(
        "The X server does not offer keys for the whole desktop.", "Start Desktop Agent again in a desktop session."
    )
