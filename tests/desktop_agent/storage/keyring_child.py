"""A child process of test_secrets.py: it runs one scenario and prints the results as JSON on the last line."""

import asyncio
import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Awaitable
from typing import Any

from pydantic import SecretStr

from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.errors import SecretsUnavailable

PLANTED = os.environ.get("PLANTED", "")


async def error_of(call: Awaitable[Any]) -> SecretsUnavailable | None:
    try:
        await call
    except SecretsUnavailable as error:
        return error
    return None


async def error_name(call: Awaitable[Any]) -> str:
    error = await error_of(call)
    return type(error).__name__ if error else "no error"


def plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None


async def prepare() -> dict[str, Any]:
    await SecretStore().set("key", SecretStr("x"))
    return {}


async def use_keyring() -> dict[str, Any]:
    store = SecretStore()
    results: dict[str, Any] = {"before": plain(await store.get("key"))}
    await store.set("key", SecretStr(PLANTED))
    results["after_set"] = plain(await store.get("key")) == PLANTED
    results["in_another_store"] = plain(await SecretStore().get("key")) == PLANTED
    results["other_service"] = plain(await SecretStore(service="Another").get("key"))
    store.remember_for_session("key", SecretStr("in memory"))
    results["memory_first"] = plain(await store.get("key"))
    await store.set("key", SecretStr("second"))
    results["after_replacing"] = plain(await store.get("key"))
    results["remembered_after_replacing"] = plain(store.remembered_secret("key"))
    await store.delete("key")
    results["after_deleting"] = plain(await store.get("key"))
    results["deleting_again"] = await error_name(store.delete("key"))
    results["backend"] = await store.find_keyring()
    return results


async def try_refusing_keyring(limit: float) -> dict[str, Any]:
    store = SecretStore(timeout=limit)
    calls = [store.get("key"), store.set("key", SecretStr(PLANTED)), store.delete("key")]
    errors = [await error_of(call) for call in calls]
    store.remember_for_session("key", SecretStr(PLANTED))
    return {
        "errors": [type(error).__name__ for error in errors],
        "gave_up_waiting": ["does not answer" in str(error) for error in errors],
        "session": plain(await store.get("key")) == PLANTED,
        "calls_to_the_backend": calls_to_the_backend(),
    }


def calls_to_the_backend() -> int:
    strange = sys.modules.get("strange_keyrings")
    return strange.Waiting.calls if strange else 0


async def try_missing_keyring() -> dict[str, Any]:
    results = await try_refusing_keyring(60.0)
    return {**results, "after_deleting": await error_name(SecretStore().get("key"))}


async def try_leaking_keyring() -> dict[str, Any]:
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.DEBUG, force=True)
    asyncio.get_running_loop().set_debug(True)
    store, key = SecretStore(), SecretStr(PLANTED)
    shown = {"repr": repr(store), "state": repr(vars(store))}
    raised: list[str] = []
    for name, call in {"set": store.set("key", key), "get": store.get("key")}.items():
        try:
            await call
        except SecretsUnavailable as error:
            raised.append(type(error).__name__)
            traceback_with_locals = traceback.TracebackException.from_exception(error, capture_locals=True)
            shown[name] = (
                "".join(traceback_with_locals.format()) + repr(error) + str(error) + error.detail + repr(vars(error))
            )
            chain = [error.__cause__, error.__context__]
            shown[name + " chain"] = "".join(map(repr, chain))
    store.remember_for_session("key", key)
    shown["state with a key"] = repr(store) + repr(vars(store))
    shown["log"] = log.getvalue()
    return {
        "raised": raised,
        "looked_at": sum(map(len, shown.values())),
        "seen_in": [name for name, text in shown.items() if PLANTED in text],
    }


SCENARIOS = {
    "prepare": prepare,
    "keep": use_keyring,
    "locked": lambda: try_refusing_keyring(60.0),
    "unanswered": lambda: try_refusing_keyring(0.5),
    "missing": try_missing_keyring,
    "leak": try_leaking_keyring,
}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(SCENARIOS[sys.argv[1]]())))
