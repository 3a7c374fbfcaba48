"""The vendors' own SDK clients behind one interface: what an SDK parses from the bytes of the demo server.

async with ANTHROPIC.client(base_url) as client:
    said = await ANTHROPIC.ask(client, ANTHROPIC.begun("Hello!"), tools=True)
"""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = dict[str, Any]
SCHEMA: Json = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": []}
NAMES = ("read_file", "write_file", "calculate")


@dataclass
class SdkAnswer:
    """The answer that a client parsed. `turn` is for the history; `calls` are ids, names and arguments."""

    text: str = ""
    thought: str = ""
    calls: list[tuple[str, str, Json]] = field(default_factory=list)
    finish: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    turn: list[Any] = field(default_factory=list)

    @property
    def wanted(self) -> list[tuple[str, Json]]:
        return [(name, arguments) for _, name, arguments in self.calls]


class Client(Protocol):
    """One SDK. Histories are lists of the SDK's own message types."""

    name: str
    finish_with_calls: str

    def client(self, url: str) -> AbstractAsyncContextManager[Any]: ...

    def has_begun(self, text: str, png: str | None = None) -> list[Any]: ...

    def returned(self, answer: SdkAnswer, results: list[str]) -> list[Any]: ...

    async def ask(self, client: Any, history: list[Any], *, tools: bool = False, streams: bool = True) -> SdkAnswer: ...

    async def models(self, client: Any) -> list[str]: ...

    async def count(self, client: Any, history: list[Any]) -> int | None: ...

    def failure(self) -> type[Exception]: ...


@asynccontextmanager
async def _openai(url: str) -> AsyncIterator[Any]:
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0) as client:
        yield client
    await _settled()


async def _settled() -> None:
    """Wait some turns of the loop, which closes the bodies that the SDKs leave half read."""
    gc.collect()
    for _ in range(20):
        await asyncio.sleep(0)


class OpenAIChat:
    name = "openai-chat"
    finish_with_calls = "tool_calls"

    def client(self, url: str) -> AbstractAsyncContextManager[Any]:
        return _openai(url)

    def has_begun(self, text: str, png: str | None = None) -> list[Any]:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}
        return [{"role": "user", "content": [{"type": "text", "text": text}, *([picture] if png else [])]}]

    def returned(self, answer: SdkAnswer, results: list[str]) -> list[Any]:
        return [
            {"role": "tool", "tool_call_id": call[0], "content": result}
            for call, result in zip(answer.calls, results, strict=True)
        ]

    async def ask(self, client: Any, history: list[Any], *, tools: bool = False, streams: bool = True) -> SdkAnswer:
        import json

        offered = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
        more = {"tools": offered} if tools else {}
        answer = SdkAnswer()
        if streams:
            async with client.chat.completions.stream(
                model="demo", messages=history, stream_options={"include_usage": True}, **more
            ) as stream:
                async for event in stream:
                    if event.type == "chunk" and event.chunk.choices:
                        answer.thought += getattr(event.chunk.choices[0].delta, "reasoning_content", None) or ""
                completion = await stream.get_final_completion()
        else:
            completion = await client.chat.completions.create(model="demo", messages=history, **more)
            answer.thought = getattr(completion.choices[0].message, "reasoning_content", "")
        message = completion.choices[0].message
        calls = message.tool_calls or []
        answer.text, answer.finish = message.content or "", completion.choices[0].finish_reason
        answer.calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]
        answer.input_tokens, answer.output_tokens = completion.usage.prompt_tokens, completion.usage.completion_tokens
        calls_in_history = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in calls
        ]
        answer.turn = [
            {
                "role": "assistant",
                "content": answer.text,
                **({"tool_calls": calls_in_history} if calls_in_history else {}),
            }
        ]
        return answer

    async def models(self, client: Any) -> list[str]:
        return [model.id async for model in client.models.list()]

    async def count(self, client: Any, history: list[Any]) -> int | None:
        return None

    def failure(self) -> type[Exception]:
        import openai

        return openai.APIError


class OpenAIResponses(OpenAIChat):
    name = "openai-responses"
    finish_with_calls = "completed"

    def has_begun(self, text: str, png: str | None = None) -> list[Any]:
        picture = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{png}"}
        return [{"role": "user", "content": [{"type": "input_text", "text": text}, *([picture] if png else [])]}]

    def returned(self, answer: SdkAnswer, results: list[str]) -> list[Any]:
        return [
            {"type": "function_call_output", "call_id": call[0], "output": result}
            for call, result in zip(answer.calls, results, strict=True)
        ]

    async def ask(self, client: Any, history: list[Any], *, tools: bool = False, streams: bool = True) -> SdkAnswer:
        import json

        offered = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in NAMES]
        options = {"model": "demo", "input": history, "store": False, "reasoning": {"summary": "auto"}}
        options |= {"tools": offered} if tools else {}
        if streams:
            streamed = SdkAnswer()
            async with client.responses.stream(**options) as stream:
                async for event in stream:
                    streamed.text += event.delta if event.type == "response.output_text.delta" else ""
                    streamed.thought += event.delta if event.type == "response.reasoning_summary_text.delta" else ""
                response = await stream.get_final_response()
        else:
            response = await client.responses.create(**options)
            streamed = None
        answer = SdkAnswer(response.output_text, finish=response.status)
        answer.thought = "".join(
            each.text for item in response.output if item.type == "reasoning" for each in item.summary
        )
        answer.calls = [
            (item.call_id, item.name, json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ]
        answer.input_tokens, answer.output_tokens = response.usage.input_tokens, response.usage.output_tokens
        answer.turn = [item.to_dict(mode="json", exclude_none=True) for item in response.output]
        for item in answer.turn:
            item.pop("parsed_arguments", None)
            for part in item.get("content", ()):
                part.pop("parsed", None)
        assert streamed is None or (streamed.text, streamed.thought) == (answer.text, answer.thought)
        return answer

    async def count(self, client: Any, history: list[Any]) -> int | None:
        return (await client.responses.input_tokens.count(model="demo", input=history)).input_tokens


class Anthropic:
    name = "anthropic"
    finish_with_calls = "tool_use"

    @asynccontextmanager
    async def client(self, url: str) -> AsyncIterator[Any]:
        import anthropic

        async with anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0) as client:
            yield client

    def has_begun(self, text: str, png: str | None = None) -> list[Any]:
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}
        return [{"role": "user", "content": [{"type": "text", "text": text}, *([picture] if png else [])]}]

    def returned(self, answer: SdkAnswer, results: list[str]) -> list[Any]:
        blocks = [
            {"type": "tool_result", "tool_use_id": call[0], "content": result}
            for call, result in zip(answer.calls, results, strict=True)
        ]
        return [{"role": "user", "content": blocks}]

    async def ask(self, client: Any, history: list[Any], *, tools: bool = False, streams: bool = True) -> SdkAnswer:
        options: Json = {"model": "demo", "max_tokens": 9999, "messages": history}
        options["thinking"] = {"type": "adaptive", "display": "summarized"}
        if tools:
            options["tools"] = [{"name": name, "input_schema": SCHEMA} for name in NAMES]
        streamed: SdkAnswer | None = None
        if streams:
            streamed = SdkAnswer()
            async with client.messages.stream(**options) as stream:
                async for event in stream:
                    streamed.text += event.text if event.type == "text" else ""
                    streamed.thought += event.thinking if event.type == "thinking" else ""
                message = await stream.get_final_message()
        else:
            message = await client.messages.create(**options)
        answer = SdkAnswer(finish=message.stop_reason)
        answer.text = "".join(block.text for block in message.content if block.type == "text")
        answer.thought = "".join(block.thinking for block in message.content if block.type == "thinking")
        answer.calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
        answer.input_tokens, answer.output_tokens = message.usage.input_tokens, message.usage.output_tokens
        content = [block.to_dict(mode="json", exclude_none=True) for block in message.content]
        answer.turn = [{"role": "assistant", "content": [_without(block, "parsed_output") for block in content]}]
        assert streamed is None or (streamed.text, streamed.thought) == (answer.text, answer.thought)
        return answer

    async def models(self, client: Any) -> list[str]:
        return [model.id async for model in client.models.list()]

    async def count(self, client: Any, history: list[Any]) -> int | None:
        return (await client.messages.count_tokens(model="demo", messages=history)).input_tokens

    def failure(self) -> type[Exception]:
        import anthropic

        return anthropic.APIError


class Gemini:
    name = "gemini"
    finish_with_calls = "STOP"

    @asynccontextmanager
    async def client(self, url: str) -> AsyncIterator[Any]:
        from google import genai

        client = genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=url))
        try:
            yield client
        finally:
            await client.aio.aclose()
            client.close()
            await _settled()

    def has_begun(self, text: str, png: str | None = None) -> list[Any]:
        picture = {"inlineData": {"mimeType": "image/png", "data": png}}
        return [{"role": "user", "parts": [{"text": text}, *([picture] if png else [])]}]

    def returned(self, answer: SdkAnswer, results: list[str]) -> list[Any]:
        parts = [
            {"functionResponse": {"id": call[0], "name": call[1], "response": {"output": result}}}
            for call, result in zip(answer.calls, results, strict=True)
        ]
        return [{"role": "user", "parts": parts}]

    async def ask(self, client: Any, history: list[Any], *, tools: bool = False, streams: bool = True) -> SdkAnswer:
        declared = [{"name": name, "parametersJsonSchema": SCHEMA} for name in NAMES]
        config: Json = {"thinkingConfig": {"includeThoughts": True}, "automaticFunctionCalling": {"disable": True}}
        config |= {"tools": [{"functionDeclarations": declared}]} if tools else {}
        options = {"model": "demo", "contents": _contents(history), "config": _config(config)}
        if streams:
            chunks = [chunk async for chunk in await client.aio.models.generate_content_stream(**options)]
        else:
            chunks = [await client.aio.models.generate_content(**options)]
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
        answer = SdkAnswer(finish=chunks[-1].candidates[0].finish_reason.value)
        answer.text = "".join(part.text or "" for part in parts if not part.thought)
        answer.thought = "".join(part.text or "" for part in parts if part.thought)
        calls = [part.function_call for part in parts if part.function_call]
        answer.calls = [(call.id, call.name, call.args) for call in calls]
        usage = chunks[-1].usage_metadata
        answer.input_tokens = usage.prompt_token_count
        answer.output_tokens = usage.candidates_token_count + (usage.thoughts_token_count or 0)
        parts_in_history = [
            part for part in parts if not part.thought and (part.text or part.function_call or part.thought_signature)
        ]
        answer.turn = [{"role": "model", "parts": parts_in_history}]
        return answer

    async def models(self, client: Any) -> list[str]:
        return [model.name.removeprefix("models/") async for model in await client.aio.models.list()]

    async def count(self, client: Any, history: list[Any]) -> int | None:
        return (await client.aio.models.count_tokens(model="demo", contents=_contents(history))).total_tokens

    def failure(self) -> type[Exception]:
        from google.genai import errors

        return errors.APIError


def _contents(history: list[Any]) -> list[Any]:
    """Return the SDK's own objects, as it reads plain dictionaries in snake_case only."""
    from google.genai import types

    return [types.Content.model_validate(content) for content in history]


def _config(config: Json) -> Any:
    from google.genai import types

    return types.GenerateContentConfig.model_validate(config)


def _without(block: Json, name: str) -> Json:
    return {key: value for key, value in block.items() if key != name}


CLIENTS: tuple[Client, ...] = (OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini())
