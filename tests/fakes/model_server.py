"""A small model server for the engine's tests: it lists models and gives one answer."""

import json

from desktop_agent.types.providers import Endpoint
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse

JSON = {"content-type": "application/json"}


def listing(*names: str) -> Reply:
    """The reply to /models."""
    data = [{"id": name, "object": "model"} for name in names]
    return Reply(json.dumps({"object": "list", "data": data}).encode(), headers=JSON, framing="length")


def refusal(status: int, message: str = "no") -> Reply:
    """An error reply as servers send it."""
    return Reply(json.dumps({"error": {"message": message}}).encode(), status, JSON, "length")


def answer(text: str = "Hello") -> Reply:
    """A short answer."""
    return Reply(sse(chunk({"content": text}), chunk(finish="stop")))


def model_server(*models: str, key: str | None = None, says: Reply | None = None) -> Loopback:
    """A server that lists these models and gives one answer; with a key, only to requests that have it."""

    def choose(request: Request) -> Reply:
        if key is not None and request.headers.get("authorization") != f"Bearer {key}":
            return refusal(401, "wrong key")
        if request.path.endswith("/chat/completions"):
            return says or answer()
        return listing(*models) if request.path.endswith("/v1/models") else refusal(404)

    return Loopback(choose=choose)


def keys_seen(server: Loopback) -> set[str | None]:
    """The values of the authorization header that reached the server."""
    return {request.headers.get("authorization") for request in server.requests}


def endpoint(server: Loopback, id_: str = "mine", **more: object) -> Endpoint:
    return Endpoint.model_validate({"id": id_, "title": id_.title(), "base_url": server.url, **more})
