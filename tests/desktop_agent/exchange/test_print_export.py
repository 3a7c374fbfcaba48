"""A conversation as HTML for printing: nothing is lost, and no part is long."""

import base64
import io
import re

import pytest
from PIL import Image as Picture

from desktop_agent.exchange import print_export as module
from desktop_agent.exchange.print_export import PAGE_WIDTH, PrintedPart, printed_parts
from desktop_agent.types.blocks import Base64Source, Image, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.messages import Message, Role, now


def tree(*messages: Message) -> ConversationTree:
    parents = (None, *(message.id for message in messages))
    stored = tuple(
        TreeMessage(message=message, parent=parent) for message, parent in zip(messages, parents, strict=False)
    )
    return ConversationTree(
        id="c" * 32, title="A <title>", created_at=now(), updated_at=now(), messages=stored, head=messages[-1].id
    )


def parts_of(*messages: Message) -> list[PrintedPart]:
    return list(printed_parts(tree(*messages), lambda _: None, lambda *_: ()))


def words_of(html: str) -> str:
    return " ".join(module.TAG.sub(" ", html).replace("&nbsp;", " ").split())


def assistant(*blocks: object) -> Message:
    return Message(role=Role.ASSISTANT, blocks=blocks)  # type: ignore[arg-type]


def test_the_title_is_first_and_every_turn_follows() -> None:
    title, mine, answer = parts_of(Message.user("a <b> & c"), Message.assistant("**yes**"))
    assert "<h1>A &lt;title&gt;</h1>" in title.html
    assert "a &lt;b&gt; &amp; c" in mine.html
    assert "<strong>yes</strong>" in answer.html
    assert [(part.begins_turn, part.done, part.total) for part in (title, mine, answer)] == [
        (False, 0, 0),
        (True, 1, 2),
        (True, 2, 2),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```python\n" + "print('x')  # some words\n" * 400 + "```",
        "word &amp; <more> " * 1_000,
        "\n\n".join(f"Paragraph {number}" for number in range(300)),
        "\n".join(f"{number}. item {number}" for number in range(1, 400)),
        "| a | b |\n|---|---|\n" + "| one | two |\n" * 300,
        "> quoted words\n" * 400,
        "```\n" + "x" * 20_000 + "\n```",
        "- a\n  - b\n    " + "long words " * 900,
        "你好世界" * 3_000,
    ],
    ids=["code", "paragraph", "paragraphs", "items", "rows", "quote", "one line of code", "nested", "no spaces"],
)
def test_long_texts_are_cut_and_no_word_is_lost(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _whole(text, monkeypatch)
    parts = parts_of(assistant(Text(text=text)))[1:]
    assert len(parts) > 3
    assert max(len(part.html) for part in parts) < 6_000
    assert "".join(words_of(part.html) for part in parts).replace(" ", "") == words_of(whole).replace(" ", "")


def _whole(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The HTML of a text that is not cut."""
    with monkeypatch.context() as patched:
        patched.setattr(module, "_PART", 10**9)
        patched.setattr(module, "_MAX_PART", 10**9)
        (part,) = parts_of(assistant(Text(text=text)))[1:]
    return part.html


def test_a_list_that_is_cut_goes_on_counting() -> None:
    parts = parts_of(assistant(Text(text="\n".join(f"{n}. item {n}" for n in range(5, 400)))))[1:]
    assert '<ol dir="auto" start="5">' in parts[0].html
    first = int(words_of(parts[1].html).split()[1])
    assert f'<ol start="{first}">' in parts[1].html
    assert parts[1].continues
    assert not parts[0].continues


def test_a_call_is_a_card_with_its_state_arguments_and_result() -> None:
    call = ToolUse(id="1", name="write_file", input={"path": "a.py"})
    result = Message.tool_results((ToolResult(tool_use_id="1", content=(Text(text="written"),)),))
    thinking = Thinking(text="Let me see.", seconds=3, provider="openai")
    html = "".join(part.html for part in parts_of(assistant(thinking, call), result))
    assert "<details" not in html
    assert "<figure" not in html
    words = words_of(html)
    assert words.index("Thought for 3 s") < words.index("Let me see.") < words.index("Write a file ✓ Done")
    assert words.index("arguments") < words.index("result") < words.index("written")


def test_code_that_is_cut_begins_with_a_line_in_each_part() -> None:
    content = "\n".join(f"line {number}" for number in range(300))
    call = ToolUse(id="1", name="write_file", input={"path": "a.py", "content": content})
    result = Message.tool_results((ToolResult(tool_use_id="1", content=(Text(text=content),)),))
    patch = "".join(f"+line {number}\n" for number in range(300))
    answer = assistant(Text(text=f"```diff\n{patch}```"))
    html = "".join(part.html for part in parts_of(assistant(call), result, answer))
    assert len(re.findall("<pre", html)) > 10
    assert not re.search(r"<pre[^>]*>(<[^/][^>]*>)*(\n|</)", html)
    assert not re.search(r"\n(<[^>]*>)*</pre>", html)


def test_a_picture_is_as_wide_as_the_page_at_most_and_a_broken_one_is_named() -> None:
    data = io.BytesIO()
    Picture.new("RGB", (3_000, 1_000), "red").save(data, "PNG")
    source = Base64Source(media_type="image/png", data=base64.b64encode(data.getvalue()).decode())
    html = "".join(part.html for part in parts_of(assistant(Image(source=source))))
    assert f'width="{PAGE_WIDTH}" height="{PAGE_WIDTH // 3}"' in html
    broken = Image(
        source=source.model_copy(update={"data": base64.b64encode(data.getvalue()[:60]).decode()}), name="Cat"
    )
    assert "[Cat]" in "".join(part.html for part in parts_of(assistant(broken)))


def test_a_formula_is_a_picture_within_its_line() -> None:
    (_, answer) = parts_of(assistant(Text(text="so $\\frac{a}{b}$ is " * 5)))
    pictures = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)" width="\d+" height="\d+"[^>]*>', answer.html)
    assert words_of(answer.html) == "so is " * 4 + "so is"
    assert len(pictures) == 5
    svg = base64.b64decode(pictures[0]).decode()
    assert svg.startswith("<svg width=")
    assert svg.endswith("</svg>")
    assert "currentColor" not in svg
