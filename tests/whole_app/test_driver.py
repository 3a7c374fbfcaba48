"""A person who sees the window only through its accessible names: prompts, approval, a picture, Stop."""

import io
import statistics
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.fakes.threaded_model_server import MODEL, ModelServer, Story, numbered
from tests.fakes.window_process import Program, Screen, opened, wait_until

PRESSES = 5

Desk = tuple[Program, Screen]


@pytest.fixture(scope="module")
def demo(real_display: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    data = tmp_path_factory.mktemp("driver") / "data"
    with opened(real_display, data, "--demo") as desk:
        desk[1].wait_for("Message")
        yield desk


def idle(screen: Screen) -> None:
    screen.wait_for("Send")


def test_a_prompt_is_answered_while_one_looks_on(demo: Desk) -> None:
    _, screen = demo
    screen.send("Hello there")
    wait_until("the answer is there", lambda: "def greet(name: str) -> str:" in screen.last("Assistant said"))
    idle(screen)
    wait_until("it says who it is", lambda: "I am the demo model" in screen.last("Assistant said"))
    screen.scroll_to_start()
    screen.wait_last("You said", "Hello there")
    screen.wait_for("Thinking")


@pytest.mark.exhaustive(
    "test_stop_keeps_what_came_and_a_restart_shows_it, which waits for words of an answer that goes on"
)
def test_text_is_shown_as_it_arrives(real_display: dict[str, str], tmp_path: Path) -> None:
    released = threading.Semaphore(0)

    def word_by_word() -> Iterator[str]:
        for number in range(5):
            released.acquire()
            yield f"w{number} "

    with (
        ModelServer(lambda _: Story(word_by_word())) as server,
        opened(real_display, tmp_path / "data", "--base-url", server.url, "--model", MODEL) as (_, screen),
    ):
        screen.send("Say something")
        for number in range(5):
            released.release()
            shown = " ".join(f"w{index}" for index in range(number + 1))
            wait_until(shown, lambda text=shown: screen.last("Assistant said").strip() == text)
        idle(screen)


def test_a_call_is_edited_approved_and_done_as_edited(demo: Desk) -> None:
    program, screen = demo
    screen.new_conversation()
    screen.send("write a file")
    screen.wait_for("Approve tool call", "dialog")
    written = program.data / "demo workspace" / "notes" / "hello.txt"
    assert not written.exists()
    wait_until("the dialog can be used", lambda: "enabled" in screen.wait_for("Edit arguments")["states"])
    screen.press("Edit arguments")
    arguments = wait_until("the arguments are shown", lambda: screen.last("Arguments as JSON"))
    assert "Hello from the demo!" in arguments
    screen.write("Arguments as JSON", '{"path": "notes/hello.txt", "content": "Größe & 尺寸, as edited\\n"}')
    wait_until("Allow once can be pressed", lambda: "enabled" in screen.wait_for("Allow once")["states"])
    screen.press("Allow once")
    screen.wait_gone("Approve tool call")
    idle(screen)
    assert written.read_text(encoding="utf-8") == "Größe & 尺寸, as edited\n"
    card = screen.last("Tool call: Write a file")
    assert "Done" in card
    # Assistive technology must say it too.
    assert "arguments, edited: notes/hello.txt +1\n" in card
    answer = screen.last("Assistant said")
    assert "you changed what I had asked for" in answer
    assert "beginning “Größe & 尺寸, as edited”" in answer


@pytest.mark.exhaustive("tests/ui/composer/test_composer.py::test_a_pasted_picture_is_taken_in")
def test_a_pasted_picture_is_sent_whole(demo: Desk) -> None:
    _, screen = demo
    screen.new_conversation()
    image = Image.new("RGB", (123, 45), "teal")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    screen.paste(buffer.getvalue(), "image/png")
    chip = screen.wait_for("Attached image: Pasted picture")
    assert "showing" in chip["states"]
    screen.send("What is in this picture?")
    idle(screen)
    answer = screen.last("Assistant said")
    assert "PNG (image/png), 123 x 45 pixels" in answer
    assert screen.find("Attached image: Pasted picture") is None


@pytest.mark.exhaustive(
    "tests/ui/bridge/test_library.py::test_a_conversation_is_listed_while_its_first_answer_is_under_way"
)
def test_what_is_sent_and_left_at_once_is_listed(demo: Desk) -> None:
    _, screen = demo
    screen.new_conversation()
    screen.write("Message", "left at once")
    screen.focus("Message")
    screen.keys("Return", "ctrl+n")
    wait_until("it is listed", lambda: listed(screen, "left at once, "))


def listed(screen: Screen, beginning: str) -> bool:
    return any(node["role"] == "list item" and node["name"].startswith(beginning) for node in screen.tree())


def test_stop_keeps_what_came_and_a_restart_shows_it(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(real_display, data, "--demo") as (program, screen):
        screen.wait_for("Message")
        screen.send("tell me a long story")
        wait_until("the story grows", lambda: len(screen.last("Assistant said")) > 400)
        screen.press("Stop")
        idle(screen)
        kept = screen.last("Assistant said")
        assert kept.endswith("Not finished")
        assert len(kept) > 400
        assert program.end() == 0
    with opened(real_display, data) as (_, screen):
        screen.wait_for("Assistant said")
        screen.wait_last("Assistant said", kept)
        screen.scroll_to_start()
        screen.wait_last("You said", "tell me a long story")


@pytest.mark.exhaustive(
    "tests/desktop_agent/providers/dialects/openai_chat/test_adapter.py::test_cancelling_the_task_closes_the_connection",
    "tests/ui/shell/test_window.py::test_stop_stands_where_send_was_and_stops",
)
def test_stop_closes_the_connection(real_display: dict[str, str], tmp_path: Path) -> None:
    # For assistive technology Qt holds the button down for 100 ms: two such presses are enough.
    ways = [*[("mouse", Screen.click)] * PRESSES, *[("accessibility", Screen.press)] * 2]
    took: dict[str, list[float]] = {way: [] for way, _ in ways}
    with ModelServer(lambda _: Story(numbered(), pace=0.01)) as server:
        with opened(real_display, tmp_path / "data", "--base-url", server.url, "--model", MODEL) as (_, screen):
            for number, (way, press) in enumerate(ways):
                if number:
                    screen.new_conversation()
                screen.send(f"story {number}")
                stream = wait_until(f"the server is asked for {number}", lambda n=number: server.streams[n:])[0]
                wait_until("it streams", lambda s=stream: len(s.sent) > 10 and screen.find("Stop"))
                pressed_at = press(screen, "Stop")
                gone_at = wait_until("the connection closes", lambda s=stream: s.gone_at)
                took[way].append((gone_at - pressed_at) * 1000)
                idle(screen)
                wait_until(
                    "the keyboard is back at the message", lambda: "focused" in screen.wait_for("Message")["states"]
                )
        assert len(server.prompts) == len(ways), "Stop must not ask again"
    for way, figures in took.items():
        listed = " ".join(f"{figure:.0f}" for figure in sorted(figures))
        print(f"Stop by {way} to closed connection, ms: median {statistics.median(figures):.0f}; {listed}")
