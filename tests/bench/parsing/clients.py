"""The readers of the long answer: the HTTP library alone, our own code, and the vendors' clients.

Making and warming up a client is outside of the measured time.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic import SecretStr

from tests.fakes.vendor_streams import PATHS, ROOTS

Reading = AbstractAsyncContextManager[AsyncIterator[Any]]
"""When it is entered, the client is ready; iterating it sends the request and yields the events."""
Client = Callable[[int], Reading]
"""Takes the port of the server."""

_PROMPT = [{"role": "user", "content": "hi"}]


def bytes_only(dialect: str) -> Client:
    """The limit: the HTTP library reads the bytes."""

    @asynccontextmanager
    async def client(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
        import httpx

        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:

            async def events() -> AsyncIterator[bytes]:
                url = f"http://127.0.0.1:{port}/{ROOTS[dialect]}/x{PATHS[dialect]}"
                async with http.stream("POST", url, json={}) as response:
                    async for chunk in response.aiter_bytes():
                        yield chunk

            yield events()

    return client


def canonical(dialect: str) -> Client:
    """Our provider, up to typed events."""

    @asynccontextmanager
    async def client(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
        from desktop_agent.providers.provider import make_provider
        from desktop_agent.providers.transport.http_client import HttpClient
        from desktop_agent.types.messages import Message
        from desktop_agent.types.providers import ModelRequest

        http = HttpClient()
        provider = make_provider(dialect, f"http://127.0.0.1:{port}/{ROOTS[dialect]}", SecretStr("key"), http)
        await http.warm_up()
        yield provider.stream(ModelRequest("m", (Message.user("hi"),)))
        await http.aclose()

    return client


def library(dialect: str) -> Client:
    """Our Client as other programs use it; its session stores the conversation."""

    @asynccontextmanager
    async def client(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
        import desktop_agent

        address = f"http://127.0.0.1:{port}/{ROOTS[dialect]}"
        options = desktop_agent.AgentOptions(dialect=dialect, base_url=address, api_key="key", model="m")
        async with desktop_agent.Client(options) as client:
            yield client.stream("hi")

    return client


@asynccontextmanager
async def _openai_chat(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="key") as client:

        async def events() -> AsyncIterator[Any]:
            async for event in await client.chat.completions.create(model="m", messages=_PROMPT, stream=True):  # type: ignore[arg-type]
                yield event

        yield events()


@asynccontextmanager
async def _openai_chat_helper(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="key") as client:

        async def events() -> AsyncIterator[Any]:
            async with client.chat.completions.stream(model="m", messages=_PROMPT) as stream:  # type: ignore[arg-type]
                async for event in stream:
                    yield event

        yield events()


@asynccontextmanager
async def _openai_responses(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="key") as client:

        async def events() -> AsyncIterator[Any]:
            async for event in await client.responses.create(model="m", input="hi", stream=True):
                yield event

        yield events()


@asynccontextmanager
async def _openai_responses_helper(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="key") as client:

        async def events() -> AsyncIterator[Any]:
            async with client.responses.stream(model="m", input="hi") as stream:
                async for event in stream:
                    yield event

        yield events()


@asynccontextmanager
async def _anthropic(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic(base_url=f"http://127.0.0.1:{port}", api_key="key") as client:

        async def events() -> AsyncIterator[Any]:
            async for event in await client.messages.create(
                model="m",
                max_tokens=1000,
                messages=_PROMPT,  # type: ignore[arg-type]
                stream=True,
            ):
                yield event

        yield events()


@asynccontextmanager
async def _anthropic_helper(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic(base_url=f"http://127.0.0.1:{port}", api_key="key") as client:

        async def events() -> AsyncIterator[Any]:
            async with client.messages.stream(model="m", max_tokens=1000, messages=_PROMPT) as stream:  # type: ignore[arg-type]
                async for event in stream:
                    yield event

        yield events()


@asynccontextmanager
async def _gemini(port: int) -> AsyncGenerator[AsyncIterator[Any], None]:
    from google import genai

    client = genai.Client(api_key="key", http_options={"base_url": f"http://127.0.0.1:{port}"})

    async def events() -> AsyncIterator[Any]:
        async for event in await client.aio.models.generate_content_stream(model="m", contents="hi"):
            yield event

    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.aio.aclose)
        yield events()


SDKS: dict[str, dict[str, Client]] = {
    "openai-chat": {"openai_sdk": _openai_chat, "openai_sdk_helper": _openai_chat_helper},
    "openai-responses": {"openai_sdk": _openai_responses, "openai_sdk_helper": _openai_responses_helper},
    "anthropic": {"anthropic_sdk": _anthropic, "anthropic_sdk_helper": _anthropic_helper},
    "gemini": {"google_genai": _gemini},
}
"""The vendors' clients: the raw stream, and the helper that also accumulates, if there is one."""
