"""A bus that writes what is no message: its connection ends, and whoever asked goes on without it."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from jeepney import MatchRule, MessageType, new_method_return
from jeepney.low_level import Parser

from ui.bridge.desktop.message_bus import MessageBus
from ui.bridge.desktop.screen_lock import is_screen_unlocked

# An order of bytes that does not exist, and a type of message that does not.
BROKEN = (b"?" * 16, b"l\x63\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00")


@asynccontextmanager
async def broken_bus(monkeypatch, folder, garbage):
    """Greet whoever connects, and answer everything else with these bytes."""

    served = []

    async def serve(reader, writer):
        served.append(asyncio.current_task())
        await reader.readuntil(b"\r\n")
        writer.write(b"OK 1234deadbeef\r\n")
        line = await reader.readuntil(b"\r\n")
        if line.startswith(b"NEGOTIATE"):
            writer.write(b"AGREE_UNIX_FD\r\n")
            await reader.readuntil(b"BEGIN\r\n")
        parser = Parser()
        while data := await reader.read(4096):
            parser.add_data(data)
            while (message := parser.get_next_message()) is not None:
                if message.header.message_type is not MessageType.method_call:
                    continue
                is_greeting = message.header.fields.get(3) == "Hello"
                reply = new_method_return(message, "s", (":1.1",)).serialise(serial=1) if is_greeting else garbage
                writer.write(reply)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_unix_server(serve, folder / "bus")
    for name in ("SESSION", "SYSTEM"):
        monkeypatch.setenv(f"DBUS_{name}_BUS_ADDRESS", f"unix:path={folder / 'bus'}")
    async with server:
        yield
        await asyncio.gather(*served)


@pytest.mark.parametrize("garbage", BROKEN)
def test_the_screen_counts_as_locked_where_the_answer_is_broken(in_loop, monkeypatch, tmp_path, garbage):
    async def work():
        async with broken_bus(monkeypatch, tmp_path, garbage):
            return await is_screen_unlocked()

    assert in_loop(work()) is False


@pytest.mark.parametrize("garbage", BROKEN)
def test_who_listens_there_can_close_the_connection_and_ask_no_more(in_loop, monkeypatch, tmp_path, garbage):
    async def work():
        async with broken_bus(monkeypatch, tmp_path, garbage):
            bus = MessageBus()
            await bus.open()
            await bus.listen(MatchRule(type="signal"))
            for _ in range(2):
                with pytest.raises(ConnectionError):
                    await bus.call("org.example", "/", ("org.example", "Do"), None, ())
                await bus.close()

    in_loop(work())
