"""`ask`: its input, its output and its exit codes."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import sys
import threading
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from desktop_agent.__main__ import HEADLESS, main
from desktop_agent.agent import provider_stream
from desktop_agent.storage.records import ConversationState
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, Envelope, RunStarted, TurnStarted
from desktop_agent.types.messages import Message, Role, now
from desktop_agent.types.policies import QueuedMessage
from desktop_agent.types.providers import ReasoningBudget, ReasoningDisabled, ReasoningEffort
from tests.fakes.ask_command import ROOT, Asker, finished, serving
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.frame.patience import PATIENCE

JSON = {"content-type": "application/json"}


CALL = [{"index": 0, "id": "c", "function": {"name": "get", "arguments": "{}"}}]


def says(*texts: str, finish: str = "stop") -> Reply:
    return Reply(sse(*(chunk({"content": text}) for text in texts), chunk(finish=finish)))


def calls(*named_inputs: tuple[str, dict[str, Any]]) -> Reply:
    tool_calls = [
        {
            "index": n,
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for n, (name, arguments) in enumerate(named_inputs)
    ]
    return Reply(sse(chunk({"tool_calls": tool_calls}), chunk(finish="tool_calls")))


def refuses(status: int, message: str) -> Reply:
    return Reply(json.dumps({"error": {"message": message}}).encode(), status, JSON, "length")


def sent(server: Loopback) -> list[Any]:
    return [request.json for request in server.requests if request.method == "POST"]


def png(size: tuple[int, int] = (3, 2)) -> bytes:
    data = BytesIO()
    Image.new("RGB", size, "red").save(data, "PNG")
    return data.getvalue()


def test_text_comes_as_text(ask: Asker) -> None:
    with serving(Loopback(says("Hel", "lo"))) as server:
        result = ask("Say hello", server=server)
    assert (result.code, result.out) == (0, "Hello\n")
    assert result.err == f"conversation {result.conversation}\n"
    assert sent(server)[0]["messages"] == [{"role": "user", "content": "Say hello"}]
    assert sent(server)[0]["model"] == "m"


def test_lines_come_as_lines(ask: Asker) -> None:
    with serving(Loopback(says("Hel", "lo"))) as server:
        result = ask("--jsonl", "hi", server=server)
    assert [event["type"] for event in result.events] == ["content_delta", "content_delta", "message_delta", "done"]
    assert "".join(event.get("text", "") for event in result.events) == "Hello"
    assert result.code == 0


@pytest.mark.parametrize("text", ["line\u2028separator", "next\u0085line", "\U0001f600 你好", "tab\tand\x0bmore"])
def test_a_line_is_one_line_for_every_reader(ask: Asker, text: str) -> None:
    with serving(Loopback(says(text))) as server:
        result = ask("--jsonl", "hi", server=server)
    assert result.events[0] == {"type": "content_delta", "text": text}


def test_arguments_with_lone_halves_and_huge_numbers_come_through(ask: Asker) -> None:
    arguments = {"a": "\ud83d", "n": 10**30}
    with serving(Loopback(calls(("nothing", arguments)), says("done"))) as server:
        result = ask("--jsonl", "hi", server=server)
    (call,) = [event for event in result.events if event["type"] == "tool_use"]
    assert call["input"]["n"] == 10**30
    assert result.code == 0


@pytest.mark.parametrize("words", [[], ["--jsonl"]])
def test_what_was_asked_differently_is_said_apart_from_the_answer(ask: Asker, words: list[str]) -> None:
    with serving(Loopback(says("Hi"))) as server:
        result = ask(*words, "--reasoning", "5000", "hi", server=server)
    assert result.err.count("5000 tokens became “medium”") == 1
    assert "became" not in result.out


def test_an_unexpected_end_is_explained(ask: Asker) -> None:
    with serving(Loopback(says("Hi", finish="weird"))) as server:
        result = ask("hi", server=server)
    assert (result.code, result.out) == (0, "Hi\n")
    assert "does not know: “weird”" in result.err


def paused(text: str, reason: str) -> Reply:
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {"id": "m", "role": "assistant", "content": [], "model": "m", "usage": {}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return Reply("".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode())


@pytest.mark.parametrize("jsonl", [(), ("--jsonl",)])
def test_an_answer_that_a_filter_cut_or_that_was_refused_is_no_success(ask: Asker, jsonl: tuple[str, ...]) -> None:
    with serving(Loopback(says("Half", finish="content_filter"))) as server:
        result = ask(*jsonl, "hi", server=server)
    assert (result.code, "Half" in result.out, "filter" in result.err) == (1, True, True)
    with serving(Loopback(paused("I would", "refusal"))) as server:
        result = ask(*jsonl, "--dialect", "anthropic", "hi", server=server)
    assert (result.code, "I would" in result.out) == (1, True)


def test_a_picture_is_an_answer(ask: Asker) -> None:
    data = base64.b64encode(png()).decode()
    painted = Reply(
        sse(
            chunk({"images": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]}),
            chunk(finish="stop"),
        )
    )
    with serving(Loopback(painted, painted)) as server:
        result = ask("Draw a cat", server=server)
        lines = ask("--jsonl", "Draw a cat", server=server)
    assert (result.code, result.out, lines.code) == (0, "\n", 0)
    assert "The model made a picture." in result.err
    assert lines.events[0] == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def test_a_pause_without_tools_is_gone_on_from(ask: Asker) -> None:
    with serving(Loopback(paused("Let me ", "pause_turn"), paused("see.", "end_turn"))) as server:
        result = ask("--dialect", "anthropic", "hi", server=server)
        assert len(sent(server)) == 2
    assert (result.code, result.out) == (0, "Let me see.\n")


def test_a_server_that_only_pauses_ends_too(ask: Asker) -> None:
    with serving(Loopback(paused("…", "pause_turn"))) as server:
        result = ask("--dialect", "anthropic", "hi", server=server)
        assert len(sent(server)) < 30
    assert result.code == 1
    assert "A limit was reached: pauses" in result.err


def test_an_error_is_a_sentence_with_a_remedy(ask: Asker) -> None:
    with serving(Loopback(refuses(401, "no such key"))) as server:
        result = ask("hi", server=server)
    assert result.code == 1
    assert "no such key" in result.err
    assert "The server wants an API key: no such key. Enter an API key" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--reasoning", "a lot", "hi"],
        ["--max-tokens", "0", "hi"],
        ["--workspace", "/no/such/folder", "hi"],
        ["--workspace", f"/{'x' * 300}", "hi"],
        ["--workspace", "/y" * 3000, "hi"],
        ["--base-url", "ftp://x", "hi"],
        ["--base-url", "http://[::1", "hi"],
        ["--base-url", "http://127.0.0.1:99999/v1", "hi"],
        ["--base-url", "http://127.0.0.1:http/v1", "hi"],
        ["--base-url", "http://me:secret@127.0.0.1/v1", "hi"],
        ["--demo", "--base-url", "http://127.0.0.1:1/v1", "hi"],
        ["--dialect", "smoke-signals", "hi"],
        ["--continue", "nobody", "hi"],
        ["hi"],
    ],
    ids=lambda words: " ".join(words)[:60],
)
def test_wrong_use_ends_with_2_and_a_sentence(ask: Asker, words: list[str]) -> None:
    result = ask(*words)
    assert result.code == 2
    assert result.err.strip()
    assert "Traceback" not in result.err
    assert "secret" not in result.err.replace("the key belongs in", "")


def test_without_a_command_it_says_how(ask: Asker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "ask" in capsys.readouterr().err


def test_no_server_there_is_an_error(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.agent.retry.RetryPolicy.delay", lambda *_: None)
    result = ask("--base-url", "http://127.0.0.1:9/v1", "--model", "m", "hi")
    assert result.code == 1
    assert "could not be reached" in result.err


def test_a_conversation_goes_on(ask: Asker) -> None:
    with serving(Loopback(says("one"), says("two"))) as server:
        first = ask("first", server=server)
        second = ask("--continue", first.conversation, "second", server=server)
    assert second.conversation == first.conversation
    assert [(message["role"], message["content"]) for message in sent(server)[1]["messages"]] == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
    ]


def test_the_demo_goes_on_with_the_conversation_of_another_server(ask: Asker) -> None:
    with serving(Loopback(says("one"))) as server:
        first = ask("first", server=server)
        second = ask("--demo", "--continue", first.conversation, "Hello")
    assert (second.code, second.conversation) == (0, first.conversation)
    assert "demo model" in second.out
    assert len(sent(server)) == 1


def test_what_goes_on_in_a_folder_has_its_instructions(ask: Asker) -> None:
    async def move(conversation: str) -> None:
        store = await Store.open(ask.folder)
        folder = await store.folders.create("Work", instructions="Be brief.")
        await store.placements.change([conversation], folder=folder.id)
        await store.close()

    with serving(Loopback(says("one"), says("two"))) as server:
        first = ask("--system", "You are a poet.", "first", server=server)
        asyncio.run(move(first.conversation))
        ask("--system", "You are a poet.", "--continue", first.conversation, "second", server=server)
    system_prompts = [request["messages"][0]["content"] for request in sent(server)]
    assert system_prompts == ["You are a poet.", "You are a poet.\n\nBe brief."]


def test_what_is_said_about_the_request_reaches_the_wire(ask: Asker) -> None:
    with serving(Loopback(says("ok"))) as server:
        ask("--system", "Be brief.", "--max-tokens", "77", "hi", server=server)
    (request,) = sent(server)
    assert request["messages"][0]["content"] == "Be brief."
    assert 77 in (request.get("max_tokens"), request.get("max_completion_tokens"))
    assert "tools" not in request
    assert "temperature" not in request


@pytest.mark.parametrize(
    ("word", "reasoning"),
    [
        ("none", ReasoningDisabled()),
        ("low", ReasoningEffort(level="low")),
        ("max", ReasoningEffort(level="max")),
        ("2048", ReasoningBudget(tokens=2048)),
    ],
)
def test_reasoning_reaches_the_provider(
    ask: Asker, monkeypatch: pytest.MonkeyPatch, word: str, reasoning: object
) -> None:
    provider = ScriptedProvider(Turn())
    monkeypatch.setattr("desktop_agent.engine.connections.make_provider", lambda *_: provider)
    ask("--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--reasoning", word, "hi")
    assert provider.requests[0].config.reasoning == reasoning


def test_a_picture_reaches_the_server(ask: Asker, tmp_path: Path) -> None:
    path = tmp_path / "small.png"
    path.write_bytes(png())
    with serving(Loopback(says("a red picture"))) as server:
        result = ask("--image", str(path), "What is it?", server=server)
    assert result.code == 0
    text, image = sent(server)[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is it?"}
    assert image["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


@pytest.mark.parametrize("content", [b"", b"not a picture", png()[:50]], ids=["empty", "text", "cut"])
def test_a_damaged_picture_is_a_sentence(ask: Asker, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "small.png"
    path.write_bytes(content)
    with serving(Loopback(says("never"))) as server:
        result = ask("--image", str(path), "What is it?", server=server)
    assert result.code == 1
    assert "small.png" in result.err
    assert server.requests == []


def test_of_a_document_is_said_how_it_is_given(ask: Asker, tmp_path: Path) -> None:
    path = tmp_path / "plan.pdf"
    path.write_bytes(b"%PDF-1.7\n")
    result = ask("--demo", "--image", str(path), "What is it?")
    assert result.code == 1
    assert "plan.pdf" in result.err
    assert "--workspace" in result.err


def test_a_picture_that_is_not_there_is_a_sentence(ask: Asker, tmp_path: Path) -> None:
    result = ask("--demo", "--image", str(tmp_path / "none.png"), "hi")
    assert result.code == 1
    assert "none.png" in result.err


async def open_for_writing(channel: Path) -> int:
    """The other end, once somebody reads this one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(OSError):
                return os.open(channel, os.O_WRONLY | os.O_NONBLOCK)
            await asyncio.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="a named pipe is another thing there")
@pytest.mark.parametrize("never_ends", [True, False])
async def test_a_picture_without_end_is_too_large_and_one_that_never_comes_can_be_stopped(
    ask: Asker, tmp_path: Path, never_ends: bool
) -> None:
    channel = tmp_path / "channel.png"
    os.mkfifo(channel)
    process = await ask.start("--demo", "--image", str(channel), "hi")
    with os.fdopen(await open_for_writing(channel), "wb", buffering=0) as writer:
        os.set_blocking(writer.fileno(), True)
        if never_ends:
            with contextlib.suppress(BrokenPipeError):
                await asyncio.to_thread(lambda: [writer.write(bytes(1_000_000)) for _ in range(200)])
        while not never_ends and process.returncode is None:
            # Python sees one that comes right before the read begins only after that: it is pressed again.
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 5)
        result = await finished(process)
    assert result.code == (1 if never_ends else 130)
    assert not never_ends or "larger than 50 MB" in result.err


@pytest.mark.skipif(sys.platform == "win32", reason="written for a shell of Unix")
@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
async def test_the_answer_is_stored_and_the_code_is_0_where_streams_are_closed(ask: Asker, streams: str) -> None:
    with serving(Loopback(says("Hello."))) as server:
        words = [sys.executable, "-m", "desktop_agent", *ask.words("hi", server=server)]
        process = await asyncio.create_subprocess_exec("/bin/sh", "-c", f'exec "$@" {streams}', "sh", *words, cwd=ROOT)
        assert await process.wait() == 0
    store = await Store.open(ask.folder)
    (record,) = await store.list_conversations()
    assert [message.text for message in (await store.load(record.id)).messages] == ["hi", "Hello."]
    await store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="written for a shell of Unix")
async def test_a_prompt_from_a_closed_input_is_no_prompt(ask: Asker) -> None:
    words = [sys.executable, "-m", "desktop_agent", *ask.words("--demo", "-")]
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", 'exec "$@" <&-', "sh", *words, cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    result = await finished(process)
    assert result.code == 2
    assert "is empty" in result.err


WRITE = ("write_file", {"path": "a.txt", "content": "written"})
READ = ("read_file", {"path": "b.txt"})


@pytest.mark.parametrize(("approve", "outcome", "written"), [("always", "succeeded", True), ("never", "denied", False)])
def test_calls_are_approved_or_not(ask: Asker, tmp_path: Path, approve: str, outcome: str, written: bool) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "b.txt").write_text("read me")
    with serving(Loopback(calls(WRITE, READ), says("done"))) as server:
        result = ask("--jsonl", "--workspace", str(folder), "--tools", "all", "--approve", approve, "hi", server=server)
    results = [event for event in result.events if event["type"] == "tool_result"]
    assert [(result["tool_use_id"], result["outcome"]) for result in results] == [
        ("call_0", outcome),
        ("call_1", "succeeded"),
    ]
    assert "person" not in results[0]["content"][0]["text"]
    assert "read me" in results[1]["content"][0]["text"]
    assert (folder / "a.txt").exists() == written
    assert result.code == 0
    first, second = sent(server)
    names = [tool["function"]["name"] for tool in first["tools"]]
    assert {"calculate", "read_file", "list_files", "write_file", "run_command"} < set(names)
    assert [message["tool_call_id"] for message in second["messages"] if message["role"] == "tool"] == [
        "call_0",
        "call_1",
    ]
    types = [event["type"] for event in result.events]
    assert types.index("tool_result") > types.index("tool_use")


def test_a_workspace_alone_offers_reading(ask: Asker, tmp_path: Path) -> None:
    with serving(Loopback(says("ok"))) as server:
        ask("--workspace", str(tmp_path), "hi", server=server)
    assert "write_file" not in [tool["function"]["name"] for tool in sent(server)[0]["tools"]]


def test_the_key_of_the_environment_reaches_its_server_only(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKTOP_AGENT_API_KEY", "sk-planted")
    with serving(Loopback(says("ok"))) as server, serving(Loopback(says("ok"))) as other:
        result = ask("--verbose", "hi", server=server)
        redirect = Reply(b"", 307, {"location": f"{other.url}/chat/completions"}, "length")
        with serving(Loopback(redirect)) as moved:
            ask("hi", server=moved)
    assert {request.headers.get("authorization") for request in server.requests} == {"Bearer sk-planted"}
    assert not any("sk-planted" in str(request) for request in other.requests)
    assert "sk-planted" not in result.err
    stored = b"".join(path.read_bytes() for path in ask.folder.rglob("*") if path.is_file())
    assert b"sk-planted" not in stored


async def test_a_key_that_the_server_says_back_in_a_header_is_not_logged(ask: Asker) -> None:
    reply = Reply(says("ok").body, headers={"content-type": "text/event-stream", "x-seen": "sk-planted"})
    async with Loopback(reply) as server:
        environment = {"DESKTOP_AGENT_API_KEY": "sk-planted"}
        result = await ask.child("--verbose", "hi", server=server, environment=environment)
    assert (result.code, result.out) == (0, "ok\n")
    assert "DEBUG:" in result.err
    assert "sk-planted" not in result.err


def test_a_remark_does_not_steer_the_terminal(ask: Asker) -> None:
    with serving(Loopback(refuses(400, "evil \x1b[31m \u202e \x9b2J text"))) as server:
        result = ask("hi", server=server)
    assert result.code == 1
    assert r"evil \x1b[31m \u202e \x9b2J text" in result.err
    assert not {"\x1b", "\u202e", "\x9b"} & set(result.err)


def test_names_of_models_are_told_within_bounds(ask: Asker) -> None:
    data = [{"id": letter * 100_000, "object": "model"} for letter in "ab"]
    listing = json.dumps({"object": "list", "data": data}).encode()
    with serving(Loopback(Reply(listing, headers=JSON, framing="length"))) as server:
        result = ask("--base-url", server.url, "hi")
    assert result.code == 2
    assert len(result.err) < 1000


def test_a_server_with_one_model_needs_no_name(ask: Asker) -> None:
    names = ["only"]

    def choose(request: Request) -> Reply:
        if request.method == "POST":
            return says("ok")
        data = [{"id": name, "object": "model"} for name in names]
        return Reply(json.dumps({"object": "list", "data": data}).encode(), headers=JSON, framing="length")

    with serving(Loopback(choose=choose)) as server:
        assert ask("--base-url", server.url, "hi").code == 0
        assert sent(server)[0]["model"] == "only"
        names.append("another")
        result = ask("--base-url", server.url, "hi")
    assert result.code == 2
    assert "only, another" in result.err


@pytest.mark.parametrize(("stdin", "text"), [(b"from a pipe\n", "from a pipe\n"), (b"caf\xc3\xa9 \xff", "café \ufffd")])
def test_a_dash_reads_standard_input(ask: Asker, monkeypatch: pytest.MonkeyPatch, stdin: bytes, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(stdin)))
    with serving(Loopback(says("ok"))) as server:
        assert ask("-", server=server).code == 0
    assert sent(server)[0]["messages"][0]["content"] == text


@pytest.mark.parametrize("command", [words[0] for words in HEADLESS])
def test_a_command_behind_an_option_says_where_it_belongs(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--data-dir", "elsewhere", command, "hi"])
    assert ended.value.code == 2
    assert f"“{command}” is a command, and comes before all options" in capsys.readouterr().err


@pytest.mark.parametrize("prompt", ["", " \n", "-"])
def test_a_prompt_that_says_nothing_is_not_sent(ask: Asker, monkeypatch: pytest.MonkeyPatch, prompt: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(b"\n")))
    with serving(Loopback(says("ok"))) as server:
        result = ask(prompt, server=server)
    assert result.code == 2
    assert "is empty" in result.err
    assert server.requests == []


def test_an_argument_that_is_no_text_is_sent_as_well_as_can_be(ask: Asker) -> None:
    with serving(Loopback(says("ok"))) as server:
        assert ask("caf\udce9", server=server).code == 0
    assert sent(server)[0]["messages"][0]["content"] == "caf\ufffd"


def test_the_demo_answers(ask: Asker) -> None:
    result = ask("--demo", "What is 6 * 7?")
    assert result.code == 0
    assert "demo" in result.out.lower()


@pytest.mark.parametrize(
    "tool_calls",
    [
        [{"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a": 1}{"a": 2}'}}],
        [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "[1]"}}],
        ["f(1)"],
        "f(1)",
        [{"index": 0, "id": "c", "function": {"arguments": "{}"}}],
    ],
)
def test_a_call_that_nobody_can_read_is_told_and_is_no_success(ask: Asker, tool_calls: Any) -> None:
    with serving(Loopback(Reply(sse(chunk({"tool_calls": tool_calls}), chunk(finish="tool_calls"))))) as server:
        result = ask("hi", server=server)
    assert "could not be read. It was not run." in result.err
    assert result.code == 1


def test_a_call_that_nobody_can_read_is_told_to_the_model(ask: Asker, tmp_path: Path) -> None:
    broken = [{"index": 0, "id": "c", "function": {"name": "read_file", "arguments": '{"path": 1}{"path": 2}'}}]
    first = Reply(sse(chunk({"tool_calls": broken}), chunk(finish="tool_calls")))
    with serving(Loopback(first, says("Sorry."))) as server:
        result = ask("--tools", "read", "--workspace", str(tmp_path), "hi", server=server)
        answer = sent(server)[1]["messages"][-1]
    assert (answer["role"], result.out, result.code) == ("tool", "Sorry.\n", 0)
    assert "could not be read" in result.err


def test_what_is_said_after_a_call_begins_on_a_line_of_its_own(ask: Asker, tmp_path: Path) -> None:
    def looks(words: str) -> Reply:
        call = {"index": 0, "id": "c", "function": {"name": "list_files", "arguments": "{}"}}
        return Reply(sse(chunk({"content": words}), chunk({"tool_calls": [call]}), chunk(finish="tool_calls")))

    with serving(Loopback(looks("I will look."), looks("Once more.\n"), looks(""), says("Nothing."))) as server:
        result = ask("--tools", "read", "--workspace", str(tmp_path), "hi", server=server)
    assert result.out == "I will look.\nOnce more.\nNothing.\n"


@pytest.mark.parametrize(
    ("deltas", "finish", "words"),
    [
        ([{"tool_calls": CALL}], "tool_calls", "The model called “get”, but no tools run here (--tools none)."),
        ([], "tool_calls", "The server said that the model calls a tool, but no call came."),
        ([], "stop", "The model ended its answer without saying anything."),
    ],
)
def test_an_answer_of_no_words_is_explained_and_no_success(
    ask: Asker, deltas: list[Any], finish: str, words: str
) -> None:
    with serving(Loopback(Reply(sse(*map(chunk, deltas), chunk(finish=finish))))) as server:
        result = ask("hi", server=server)
    assert (result.out, result.code) == ("\n", 1)
    assert words in result.err


@pytest.mark.parametrize(("deltas", "code"), [([], 1), ([{"content": "Hi"}], 0), ([{"tool_calls": CALL}], 0)])
def test_lines_of_neither_words_nor_a_call_are_no_success(ask: Asker, deltas: list[Any], code: int) -> None:
    with serving(Loopback(Reply(sse(*map(chunk, deltas), chunk(finish="stop"))))) as server:
        result = ask("--jsonl", "hi", server=server)
    assert result.code == code
    assert ("without saying anything" in result.err) == (not deltas)


def test_a_call_beside_words_is_told(ask: Asker) -> None:
    reply = Reply(sse(chunk({"content": "Look."}), chunk({"tool_calls": CALL}), chunk(finish="tool_calls")))
    with serving(Loopback(reply)) as server:
        result = ask("hi", server=server)
    assert (result.out, result.code) == ("Look.\n", 0)
    assert "The model called “get”" in result.err


def test_a_call_that_was_announced_and_never_came_is_told(ask: Asker) -> None:
    with serving(Loopback(says("Let me look.", finish="tool_calls"))) as server:
        result = ask("hi", server=server)
    assert "no call came" in result.err


def test_what_a_server_repeated_is_shown_once_and_told(ask: Asker) -> None:
    message = {"role": "assistant", "content": "Hello there, you."}
    end = {"choices": [{"index": 0, "delta": {}, "message": message, "finish_reason": "stop"}]}
    with serving(Loopback(Reply(sse(chunk({"content": "Hello there, "}), chunk({"content": "you."}), end)))) as server:
        result = ask("hi", server=server)
    assert result.out == "Hello there, you.\n"
    assert "They are shown once." in result.err


def test_a_damaged_event_is_told(ask: Asker) -> None:
    body = sse(chunk({"content": "One "}), '{"choices":[{"delta":', chunk({"content": "two."}), chunk(finish="stop"))
    with serving(Loopback(Reply(body))) as server:
        result = ask("hi", server=server)
    assert (result.out, result.code) == ("One two.\n", 0)
    assert "damaged" in result.err


def test_a_limit_is_told(ask: Asker) -> None:
    with serving(Loopback(says("half", finish="length"))) as server:
        result = ask("hi", server=server)
    assert (result.code, result.out) == (1, "half\n")
    assert "limit" in result.err


def test_what_a_server_said_ends_before_the_next_sentence(ask: Asker) -> None:
    busy = Reply(b'{"error":{"message":"boom"}}', 500, {**JSON, "retry-after-ms": "1"}, "length")
    with serving(Loopback(busy, says("here"))) as server:
        result = ask("hi", server=server)
    assert (result.code, result.out) == (0, "here\n")
    assert "boom. Trying again in " in result.err


async def test_ctrl_c_prints_and_keeps_what_came(ask: Asker) -> None:
    release = asyncio.Event()
    first = Reply(sse(chunk({"content": "half an answer"}), done=False), hold=release)
    async with Loopback(first, says("the rest")) as server:
        process = await ask.start("hi", server=server)
        assert process.stdout is not None
        came = await process.stdout.readexactly(len("half an answer"))
        process.send_signal(signal.SIGINT)
        result = await finished(process)
        async with asyncio.timeout(PATIENCE):
            await server.disconnected.wait()
        assert (came + result.out.encode()).decode() == "half an answer\n"
        assert result.code == 130
        assert "Traceback" not in result.err
        second = await ask.child("--continue", result.conversation, "go on", server=server)
        assert second.out == "the rest\n"
        assert [message["content"] for message in sent(server)[1]["messages"]] == ["hi", "half an answer", "go on"]


async def test_ctrl_c_keeps_what_waits_in_the_conversation_and_says_so(ask: Asker) -> None:
    store = await Store.open(ask.folder)
    record = await store.create_conversation(title="t", model="m")
    await store.commit(record.id, Message.user("one"), Message.assistant("two"))
    waiting = tuple(QueuedMessage(message=Message.user(text), when="idle") for text in ("first waits", "then this"))
    await store.update_conversation(record.id, state=ConversationState(queue=waiting))
    await store.close()
    release = asyncio.Event()
    async with Loopback(Reply(sse(chunk({"content": "half"}), done=False), hold=release)) as server:
        process = await ask.start("--continue", record.id, "mine", server=server)
        assert process.stdout is not None
        await process.stdout.readexactly(len("half"))
        process.send_signal(signal.SIGINT)
        result = await finished(process)
    assert result.code == 130
    assert "One message still waits in it." in result.err
    store = await Store.open(ask.folder)
    queue = (await store.load(record.id)).record.state.queue
    assert [entry.message.text for entry in queue] == ["then this"]
    await store.close()


async def test_a_conversation_in_the_trash_is_not_gone_on_with(ask: Asker) -> None:
    async with Loopback(says("one")) as server:
        result = await ask.child("hi", server=server)
        store = await Store.open(ask.folder)
        await store.delete_conversation(result.conversation)
        await store.close()
        second = await ask.child("--continue", result.conversation, "and?", server=server)
    assert second.code == 2
    assert "This conversation is in the trash. Restore it first." in second.err


async def test_ctrl_c_while_waiting_for_standard_input_ends_at_once(ask: Asker) -> None:
    async with Loopback(says("never")) as server:
        process = await ask.start("-", server=server, stdin=True)
        try:
            await asyncio.sleep(1.0)  # it says nothing when it begins to read
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(PATIENCE):
                assert await process.wait() == 130
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()
        assert server.requests == []


async def test_a_reader_that_leaves_stops_the_run(ask: Asker) -> None:
    goes_on = asyncio.Event()
    first = Reply(sse(*(chunk({"content": "x" * 100}) for _ in range(5000)), done=False), hold=goes_on)
    async with Loopback(first) as server:
        process = await ask.start("--jsonl", "hi", server=server)
        assert process.stdout is not None
        await process.stdout.read(10)
        process.stdout._transport.close()  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE):
            await server.disconnected.wait()
            assert process.stderr is not None
            stderr = (await process.stderr.read()).decode()
            assert await process.wait() == 141
        assert "Traceback" not in stderr
        assert "Exception ignored" not in stderr


async def test_no_screen_is_ever_imported(ask: Asker) -> None:
    script = (
        "import sys; from desktop_agent.__main__ import main; code = main(sys.argv[1:]); "
        "print(sorted(name for name in sys.modules if name.split('.')[0] in {'PySide6', 'qasync', 'ui', 'shiboken6'}),"
        " file=sys.stderr); sys.exit(code)"
    )
    async with Loopback(says("ok")) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            script,
            *ask.words("hi", server=server),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        result = await finished(process)
    assert result.code == 0
    assert result.err.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", ["x" * 300, "/".join(["y" * 200] * 25)], ids=["a name", "all names"])
def test_a_data_folder_that_is_too_long_is_said_with_what_to_do(ask: Asker, name: str) -> None:
    ask.folder = ask.folder / name
    result = ask("--demo", "hi")
    assert result.code == 1
    assert "is too long for this system. Choose a folder with a shorter path." in result.err
    assert "Traceback" not in result.err


def test_folders_whose_names_are_no_text_are_worked_in_and_what_cannot_be_saved_first_is_not_changed(
    ask: Asker, tmp_path: Path
) -> None:
    name = os.fsdecode(b"caf\xe9")
    work = tmp_path / name / "work"
    work.mkdir(parents=True)
    ask.folder = tmp_path / name / "data"
    write = calls(("write_file", {"path": "a.txt", "content": "x"}))
    tools = ["--workspace", str(work), "--tools", "all", "--approve", "always"]
    with serving(Loopback(write, says("done"), says("again"))) as server:
        result = ask("hi", *tools, "--jsonl", server=server)
        second = ask("hi", "--continue", result.conversation, server=server)
    assert (result.code, second.code, second.out) == (0, 0, "again\n")
    # A checkpoint names files in text: a change that could not be taken back is not made, and the model is told why.
    assert "bytes that are not text" in result.out
    assert not (work / "a.txt").exists()


def test_what_was_rescued_at_the_opening_is_said(ask: Asker) -> None:
    with serving(Loopback(says("one"), says("two"))) as server:
        ask("hi", server=server)
        path = ask.folder / "conversations.sqlite3"
        os.truncate(path, path.stat().st_size // 2)
        result = ask("hi again", server=server)
    assert result.code == 0
    assert "were damaged" in result.err
    assert result.out == "two\n"


async def test_a_full_disk_is_said(ask: Asker) -> None:
    async with Loopback(says("something")) as server:
        with open("/dev/full", "w") as full:  # noqa: ASYNC230, PTH123 - a device
            process = await ask.start("hi", server=server, stdout=full.fileno())
            result = await finished(process)
    assert "cannot be written" in result.err
    assert "Exception ignored" not in result.err
    assert "Traceback" not in result.err
    assert result.code == 1


def test_a_wrong_key_is_not_tried_again(ask: Asker) -> None:
    with serving(Loopback(refuses(401, "no"))) as server:
        ask("hi", server=server)
    assert len(sent(server)) == 1


def test_calls_that_a_dead_process_left_are_closed_before_the_next_prompt(ask: Asker, tmp_path: Path) -> None:
    async def leave() -> str:
        store = await Store.open(ask.folder)
        record = await store.create_conversation(title="t", workspace=str(tmp_path))
        prompt = Message.user("go")
        use = ToolUse(id="call_0", name="write_file", input={"path": "a.txt", "content": "x"})
        answer = Message(role=Role.ASSISTANT, blocks=(use,))
        events = (RunStarted(prompt.id), TurnStarted("t", answer.id, "m"), ApprovalRequested("a", "call_0", "d"))
        await store.commit(record.id, prompt, answer)
        journal = [Envelope(seq, "run", None, "t", now(), event) for seq, event in enumerate(events, 1)]
        await store.append_journal(record.id, journal)
        await store.close()
        return record.id

    conversation_id = asyncio.run(leave())
    with serving(Loopback(says("as you like"))) as server:
        result = ask("--approve", "always", "--continue", conversation_id, "never mind", server=server)
    assert (result.code, result.out) == (0, "as you like\n")
    (request,) = sent(server)
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "tool", "user"]
    assert "before this call was started" in request["messages"][2]["content"]
    assert not (tmp_path / "a.txt").exists()


def test_limits_of_the_start_can_be_given(ask: Asker) -> None:
    with serving(Loopback(Reply(b"", hold=asyncio.Event()))) as server:
        result = ask("--first-event-timeout", "0.3", "Hello", server=server)
    assert (result.code, len(sent(server))) == (1, 1)
    assert "said nothing for 0.3 seconds" in result.err
    assert "Trying again" not in result.err


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf"])
@pytest.mark.parametrize("switch", ["--headers-timeout", "--first-event-timeout"])
def test_a_limit_that_is_none_is_wrong_use(ask: Asker, switch: str, seconds: str) -> None:
    result = ask(f"{switch}={seconds}", "Hello")
    assert result.code == 2
    assert "is not a number of seconds" in result.err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_terminal_is_told_how_long_nothing_has_come(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_stream, "FIRST_NOTICE_AFTER", 0.05)
    monkeypatch.setattr(provider_stream, "NOTICE_INTERVAL", 0.02)
    ours, theirs = os.openpty()
    words: list[bytes] = []
    release = asyncio.Event()

    def read() -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 4096):
                words.append(piece)
                if b"".join(words).count(b"No answer yet, 0 s.") >= 2:
                    loop.call_soon_threadsafe(release.set)

    body = sse(chunk({"content": "Hi"}), chunk(finish="stop"))
    with serving(Loopback(Reply([b""], hold=release, late=body))) as server:
        loop = server.loop
        reader = threading.Thread(target=read)
        reader.start()
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
            monkeypatch.setattr(sys, "stderr", terminal)
            result = ask("Hello", server=server)
            monkeypatch.undo()
        reader.join()
        os.close(ours)
    output = b"".join(words).decode()
    assert output.count("No answer yet, 0 s.\r\x1b[K") >= 2
    assert "\x1b[K" in output.rpartition("No answer yet")[2]
    assert result.out == "Hi\n"


def test_elsewhere_nothing_is_said_of_the_wait(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_stream, "FIRST_NOTICE_AFTER", 0.01)
    monkeypatch.setattr(provider_stream, "NOTICE_INTERVAL", 0.01)
    with serving(Loopback(Reply(b"", hold=asyncio.Event()))) as server:
        result = ask("--first-event-timeout", "0.3", "Hello", server=server)
    assert "No answer yet" not in result.err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_an_answer_does_not_steer_the_terminal(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    answer = says("evil \x1b[8m", "\u202e \x9b2J text\n\tin lines")
    with serving(Loopback(answer)) as server, os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        ask("Hello", server=server)
        monkeypatch.undo()
        shown = b""
        # A terminal hands over line by line.
        while shown.count(b"\n") < 2:
            shown += os.read(ours, 4096)
    os.close(ours)
    assert shown.decode().replace("\r\n", "\n").expandtabs() == "evil \\x1b[8m\\u202e \\x9b2J text\n        in lines\n"


def test_a_pipe_gets_the_answer_as_it_is(ask: Asker) -> None:
    with serving(Loopback(says("\x1b[1mbold\x1b[0m"))) as server:
        assert ask("Hello", server=server).out == "\x1b[1mbold\x1b[0m\n"
