"""How much canonical events cost over the bytes that the HTTP library delivers anyway.

A child process serves one Chat Completions stream of 50,000 events from loopback. Two readers take it in turn: the HTTP
library alone, and our adapter up to typed events. Both are measured in CPU seconds of this process.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from typing import Any

EVENTS = 50_000
ROUNDS = 5
GOALS = {"ratio": 1.3}


def stream_bytes(events: int) -> bytes:
    """What OpenAI sends, padding and all."""
    head = {"id": "chatcmpl-CaVZ1a2b3c4d5e6f", "object": "chat.completion.chunk", "created": 1794960000}
    more = {"model": "gpt-6-sol", "service_tier": "default", "system_fingerprint": "fp_44709d6fcb"}
    lines: list[str] = []
    for number in range(events):
        choice = {"index": 0, "delta": {"content": f"tok{number % 97} "}, "finish_reason": None}
        lines.append(json.dumps({**head, **more, "choices": [choice], "usage": None}, separators=(",", ":")))
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    lines.append(json.dumps({**head, **more, "choices": [end], "usage": None}, separators=(",", ":")))
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


async def _serve() -> None:
    """The child: prints its port, then serves until its input ends."""
    # One event in one piece of the chunked body, as servers write them.
    pieces = [event + b"\n\n" for event in stream_bytes(EVENTS).split(b"\n\n") if event]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    body = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        for piece in body:
            writer.write(piece)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def _bytes_only(url: str) -> float:
    import httpx

    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        began = time.process_time()
        async with client.stream("POST", f"{url}/chat/completions", json={}) as response:
            async for _ in response.aiter_bytes():
                pass
        return time.process_time() - began


async def _canonical(url: str) -> float:
    from desktop_agent.providers.dialects.openai_chat import OpenAIChat
    from desktop_agent.providers.transport.http_client import HttpClient
    from desktop_agent.vocabulary.messages import Message
    from desktop_agent.vocabulary.requests import ModelRequest

    http = HttpClient()
    provider = OpenAIChat(base_url=url, api_key=None, http=http)
    await http.warm_up()
    count = 0
    began = time.process_time()
    async for _ in provider.stream(ModelRequest("m", (Message.user("hi"),))):
        count += 1
    took = time.process_time() - began
    await http.aclose()
    if count < EVENTS:
        raise RuntimeError(f"only {count} events came")
    return took


def run() -> dict[str, Any]:
    """Medians of five rounds in turn: events per CPU second of both, and the ratio (1 is the limit)."""
    command = [sys.executable, __file__, "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        url = f"http://127.0.0.1:{child.stdout.readline().strip()}/v1"
        both = [(asyncio.run(_bytes_only(url)), asyncio.run(_canonical(url))) for _ in range(ROUNDS)]
        child.stdin.close()
    limit, ours = (statistics.median(each) for each in zip(*both, strict=True))
    return {
        "events": EVENTS,
        "httpx_bytes_events_per_cpu_second": round(EVENTS / limit),
        "canonical_events_per_cpu_second": round(EVENTS / ours),
        "ratio": round(statistics.median(b / a for a, b in both), 3),
        "ratios": [round(b / a, 3) for a, b in both],
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(_serve())
    else:
        sys.stdout.write(json.dumps(run(), indent=1) + "\n")
