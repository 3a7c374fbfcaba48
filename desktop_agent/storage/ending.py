"""Ends many things of which each must be ended, whatever another one raises."""

import asyncio
from collections.abc import Awaitable


async def wait_for_all(*work: Awaitable[object]) -> None:
    """Return when all of it is done; raise what the first one raised only then."""
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
