"""What our events cost, compared with the plain bytes of the HTTP library and with the vendors' clients.

A child process serves, for each dialect, one answer of 20,000 events in the vendor's own framing. Each reader reads it
in turn, five times; the figure is the CPU time of this process for each event, the median of the rounds. The library's
Client also stores the conversation. The vendors' clients, which take up to fifty times as long, read 2,000 events. So
does a second comparison: an answer in HTTP chunks of one byte with an answer in whole events.

`python -m tests.bench.bench_parsing DIALECT` shows where the time goes.
"""

import asyncio
import cProfile
import gc
import json
import pstats
import statistics
import sys
import time
from typing import Any

from tests.bench.parsing import server
from tests.bench.parsing.clients import SDKS, Client, bytes_only, canonical, library
from tests.fakes.vendor_streams import DIALECTS

EVENTS, FEWER_EVENTS, WARMING_EVENTS = 20_000, 2_000, 200
ROUNDS = 5

# At most 1.3 times the cost of the bytes, an eighth of the openai SDK's and two fifths of the anthropic SDK's. The cost
# of Google's SDK is only reported.
GOALS = {
    **{f"{dialect}.cost_over_bytes": 1.3 for dialect in DIALECTS},
    **{f"{dialect}.client_over_ours": 1.3 for dialect in DIALECTS},
    **{f"{dialect}.cost_bytewise_over_whole": 3.0 for dialect in DIALECTS},
    "openai-chat.cost_over_openai_sdk": 1 / 8,
    "openai-responses.cost_over_openai_sdk": 1 / 8,
    "anthropic.cost_over_anthropic_sdk": 1 / 2.5,
}


def run() -> dict[str, Any]:
    """Return for each dialect the events per CPU second of each reader, our cost over theirs, and spreads."""
    ours_by_dialect = {
        dialect: {"httpx_bytes": bytes_only(dialect), "ours": canonical(dialect), "client": library(dialect)}
        for dialect in DIALECTS
    }
    with server.served(WARMING_EVENTS) as (port, _):
        for dialect, ours in ours_by_dialect.items():
            for client in (*ours.values(), *SDKS[dialect].values()):
                _seconds(client, port, WARMING_EVENTS)
    figures: dict[str, Any] = {"events": EVENTS}
    with server.served(EVENTS) as (port, _), server.served(FEWER_EVENTS) as (whole, bytewise):
        for dialect, ours in ours_by_dialect.items():
            ports = dict.fromkeys(ours, (port, EVENTS)) | dict.fromkeys(SDKS[dialect], (whole, FEWER_EVENTS))
            figures[dialect] = _compared({**ours, **SDKS[dialect]}, ports)
            ratios = [
                _seconds(ours["ours"], bytewise, FEWER_EVENTS) / _seconds(ours["ours"], whole, FEWER_EVENTS)
                for _ in range(ROUNDS)
            ]
            figures[dialect]["cost_bytewise_over_whole"] = round(statistics.median(ratios), 3)
    return figures


def profile(dialect: str) -> None:
    """Print where the library's Client spends its time."""
    client = library(dialect)
    with server.served(EVENTS) as (port, _):
        _seconds(client, port, EVENTS)
        profiler = cProfile.Profile()
        profiler.enable()
        _seconds(client, port, EVENTS)
        profiler.disable()
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(25)


def _compared(clients: dict[str, Client], ports: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """Return the figures of a dialect. `ports`: from which port each client reads, and how many events come there."""
    rounds = [
        {name: _seconds(client, *ports[name]) / ports[name][1] for name, client in clients.items()}
        for _ in range(ROUNDS)
    ]
    medians = {name: statistics.median(costs[name] for costs in rounds) for name in clients}
    over = [costs["ours"] / costs["httpx_bytes"] for costs in rounds]
    session = [costs["client"] / costs["ours"] for costs in rounds]
    return {
        "events_per_cpu_second": {name: round(1 / took) for name, took in medians.items()},
        "cost_over_bytes": round(statistics.median(over), 3),
        "cost_over_bytes_spread": f"{min(over):.2f}–{max(over):.2f}",
        "client_over_ours": round(statistics.median(session), 3),
        "client_over_ours_spread": f"{min(session):.2f}–{max(session):.2f}",
        **{
            f"cost_over_{name}": round(medians["ours"] / took, 4)
            for name, took in medians.items()
            if name not in ("ours", "httpx_bytes", "client")
        },
    }


def _seconds(client: Client, port: int, events: int) -> float:
    """Return the CPU seconds of this process for one whole answer."""

    async def read() -> tuple[int, float]:
        count = 0
        async with client(port) as reading:
            gc.collect()
            began = time.process_time()
            async for _ in reading:
                count += 1
            return count, time.process_time() - began

    count, took = asyncio.run(read())
    if count < events:
        raise RuntimeError(f"only {count} events came")
    return took


if __name__ == "__main__":
    if sys.argv[1:]:
        profile(sys.argv[1])
    else:
        sys.stdout.write(json.dumps(run(), indent=1) + "\n")
