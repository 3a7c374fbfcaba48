"""The name of a server in the hello of a TLS client (RFC 8446, section 4.1.2; RFC 6066, section 3)."""

HANDSHAKE_RECORD = 0x16
MAX_HELLO_SIZE = 64 * 1024
# From change_cipher_spec to heartbeat.
_RECORD_TYPES = range(0x14, 0x19)
_RECORD_HEADER_SIZE = 5
_MAJOR_VERSION = 3
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_RANDOM = 2 + 32
_SESSION_SIZE = 1 + 3 + _RANDOM


class IncompleteHello(Exception):
    """The message goes on."""


def record_size(start: bytes | bytearray) -> int:
    """Of the record that begins so, with its head; more than there is while the head is not whole.

    Raises ValueError for what is no record (RFC 8446, section 5.1).
    """
    if (start and start[0] not in _RECORD_TYPES) or (len(start) > 1 and start[1] != _MAJOR_VERSION):
        raise ValueError("this is no record of TLS")
    return _RECORD_HEADER_SIZE + int.from_bytes(start[3:_RECORD_HEADER_SIZE])


def may_start_hello(record: bytes) -> bool:
    """Whether a hello begins with it; of records that are encrypted already, one in 170,000 looks so."""
    if record[0] != HANDSHAKE_RECORD:
        return False
    message = record[_RECORD_HEADER_SIZE:]
    # An empty record is none, and yet is not to hide another. Servers take more than 2 ** 17 bytes and later versions.
    is_kind, is_length = message[:1] in (b"", b"\x01"), message[1:2] <= b"\x02"
    is_version = not message[4:5] or message[4] >= _MAJOR_VERSION
    return is_kind and is_length and is_version and message[_SESSION_SIZE : _SESSION_SIZE + 1] <= b"\x20"


def parse_server_name(data: bytes) -> str | None:
    """The host that the client means, in lower case; None where it names none.

    Raises Incomplete while the message goes on, and ValueError for what is no first message of a client.
    """
    message = _ByteReader(_handshake_message(data))
    message.take(_RANDOM)
    message.block(1)  # session
    message.block(2)  # ciphers
    message.block(1)  # compression
    if not message.left:
        return None
    extensions, names = _ByteReader(message.block(2)), list[bytes]()
    while extensions.left:
        kind, content = extensions.number(2), extensions.block(2)
        if kind == _SERVER_NAME:
            names.append(_host_name(content))
    if len(names) > 1:
        raise ValueError("the client names its server more than once")
    return names[0].decode("ascii").lower().removesuffix(".") if names else None


def _handshake_message(data: bytes) -> bytes:
    """The body of the handshake message that may be spread over several records."""
    gathered, records = bytearray(), _ByteReader(data)
    while len(gathered) < 4 or len(gathered) < 4 + int.from_bytes(gathered[1:4]):
        if len(gathered) > MAX_HELLO_SIZE:
            raise ValueError("the first message of the client is too long")
        if records.left and records.number(1) != HANDSHAKE_RECORD:
            raise ValueError("the first record of the client is no handshake")
        if records.left < 4:
            raise IncompleteHello
        version = records.number(2)
        if version >> 8 != _MAJOR_VERSION:
            raise ValueError("the version of the first record is not known")
        length = records.number(2)
        if not length:
            raise ValueError("a record is empty")
        if records.left < length:
            raise IncompleteHello
        gathered += records.take(length)
    if gathered[0] != _CLIENT_HELLO:
        raise ValueError("the client does not begin with its hello")
    if len(gathered) > 4 + int.from_bytes(gathered[1:4]):
        raise ValueError("behind the hello of the client its record goes on")
    return bytes(gathered[4:])


def _host_name(extension: bytes) -> bytes:
    entries = _ByteReader(_ByteReader(extension).block(2))
    kind, name = entries.number(1), entries.block(2)
    if kind != _HOST_NAME or entries.left or not name:
        raise ValueError("the client names its server in a way that is not known")
    return name


class _ByteReader:
    """Read from the front. Raises ValueError where too few are left."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    @property
    def left(self) -> int:
        return len(self._data)

    def take(self, count: int) -> bytes:
        if count > len(self._data):
            raise ValueError("the first message of the client ends too early")
        taken, self._data = self._data[:count], self._data[count:]
        return bytes(taken)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def block(self, size: int) -> bytes:
        return self.take(self.number(size))
