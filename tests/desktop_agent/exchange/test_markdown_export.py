import html

import pytest
from markdown_it import MarkdownIt

from desktop_agent.exchange.archive import picture_name
from desktop_agent.exchange.markdown_export import export_markdown
from desktop_agent.types.blocks import Citation, Image, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.messages import AttachedText, Message, Role, label_attached
from tests.desktop_agent.exchange.sample_trees import GREEN, START, full_tree, message, stored


def tree_of(*messages: Message, title: str = "Title") -> ConversationTree:
    nodes = [
        TreeMessage(message=message, parent=messages[number - 1].id if number else None)
        for number, message in enumerate(messages)
    ]
    head = messages[-1].id if messages else None
    return ConversationTree(id="i", title=title, created_at=START, updated_at=START, messages=nodes, head=head)


def headings(text: str) -> list[str]:
    tokens = MarkdownIt("commonmark").parse(text)
    return [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]


def test_a_conversation_reads_as_it_was_said() -> None:
    call = ToolUse(id="secret-id", name="read_file", input={"path": "a.txt"})
    thinking = Thinking(text="I look.\n\nNow.", provider="p", seconds=2)
    tree = tree_of(
        message("m1", Role.USER, Text(text="What is in it?"), Image(source=stored(GREEN), name="tea.png")),
        message("m2", Role.ASSISTANT, thinking, call, model="claude-x"),
        message("m3", Role.TOOL, ToolResult(tool_use_id="secret-id", content=[Text(text="one\n```\ntwo")])),
        message(
            "m4",
            Role.ASSISTANT,
            Text(text="It is"),
            Text(text=" *tea*.", citations=[Citation(title="T [1]", url="https://t.example/a b")]),
            model="claude-x",
        ),
    )
    export = export_markdown(tree)
    assert (
        export.text
        == f"""# Title

*2026-11-26 · claude-x*

## You

What is in it?

![tea.png]({picture_name(stored(GREEN))})

## Assistant

> **Thinking** (2 s)
>
> I look.
>
> Now.

**Tool call: `read_file`** · done

```json
{{
  "path": "a.txt"
}}
```

Result:

````
one
```
two
````

It is *tea*.

Sources:

1. [T \\[1\\]](https://t.example/a%20b)
"""
    )
    assert export.pictures == (stored(GREEN),)
    assert "secret-id" not in export.text


def test_pictures_may_be_named_only() -> None:
    export = export_markdown(full_tree(), with_pictures=False)
    assert export.pictures == ()
    assert "*[tea.png]*" in export.text


def test_everything_of_a_branch_is_there_and_nothing_of_another() -> None:
    text = export_markdown(full_tree()).text
    assert headings(text) == ["Everything ⟨U+DC00⟩ at once", "You", "Assistant", "Program", "Assistant"]
    for part in ("**Thinking** (2 s)", "· failed", '"b.txt"', "Server step: `web_search`", "hologram", "So far."):
        assert part in text
    assert text.endswith("Broken o\n\n*Not finished*\n")
    assert "Again" not in text
    text.encode()


@pytest.mark.parametrize(
    "open_text",
    ["```python\nx", "~~~~\n```\nx", "text\n````\n```\n", "   ```\n# no heading", "> ```\nx", "```a`b\n", "~~~ a`\nx"],
)
def test_code_that_was_not_closed_takes_nothing_in(open_text: str) -> None:
    tree = tree_of(message("a", Role.ASSISTANT, Text(text=open_text)), message("b", Role.USER, Text(text="end")))
    text = export_markdown(tree).text
    assert headings(text) == ["Title", "Assistant", "You"]


@pytest.mark.parametrize("title", ["# *a* [b](c) <d> `e` & \\", "two\nlines", "\u202eback", ""])
def test_a_title_is_its_words(title: str) -> None:
    (heading,) = headings(export_markdown(tree_of(title=title)).text)
    shown = MarkdownIt("commonmark").renderInline(heading)
    assert html.unescape(shown) == (" ".join(title.split()).replace("\u202e", "⟨U+202E⟩") or "Conversation")


def test_an_attached_text_has_its_name_above_and_a_fence_around_it() -> None:
    prompt = [Text(text="Read."), Text(text=label_attached(AttachedText("a b.txt", "# one\n```\n")))]
    export = export_markdown(tree_of(message("m1", Role.USER, *prompt)))
    assert export.text.endswith("## You\n\nRead.\n\n**Attached: `a b.txt`**\n\n````\n# one\n```\n````\n")


def test_a_short_thought_took_as_long_as_the_window_says() -> None:
    tree = tree_of(message("m1", Role.ASSISTANT, Thinking(text="I look.", provider="p", seconds=0.2)))
    assert "**Thinking** (1 s)" in export_markdown(tree).text
