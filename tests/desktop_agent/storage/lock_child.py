"""A child process of test_process_lock.py, which holds the lock until it is ended."""

import asyncio
import sys

from desktop_agent.storage.locks.conversation_locks import process_lock


async def hold() -> None:
    async with process_lock(sys.argv[1], 0) as is_alone:
        print(is_alone, flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(hold())
