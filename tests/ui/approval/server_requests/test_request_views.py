"""A server has a model answer that may ask for tools of the server: what of it a person sees, before and after."""

from PySide6.QtWidgets import QLabel, QPlainTextEdit

from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.mcp import SamplingAnswer, SamplingModel, SamplingRequest
from desktop_agent.types.providers import Price
from desktop_agent.types.tool_calls import ToolSpec
from tests.ui.test_translatable import bare_texts, marked
from ui.approval.server_requests.request_views import SamplingView, describe_model

__all__ = ["marked"]

MODEL = SamplingModel("Studio", "m", "Model M", Price(input=3, output=15))
LOOK = ToolSpec("lo\u202eok", "Looks at a thing.", {"type": "object", "properties": {"of": {"type": "string"}}})
CALL = ToolUse(id="a", name="look", input={"of": "sky"})
REQUEST = SamplingRequest(
    "Notes",
    (
        ("user", "Name a colour."),
        ("assistant", CALL),
        ("user", ToolResult(tool_use_id="a", content=(Text(text="It is"), Text(text="dark.")))),
        ("assistant", ToolUse(id="b", name="look")),
        ("user", ToolResult(tool_use_id="b", content=(Text(text="No."),), outcome=Outcome.FAILED)),
    ),
    None,
    1000,
    MODEL,
    tools=(LOOK,),
)


def shown_boxes(view):
    """Return the text of each box with the name of the box."""
    return [(editor.accessibleName(), editor.toPlainText()) for editor in view.findChildren(QPlainTextEdit)]


def test_tools_calls_and_results_stand_there_whole(qtbot):
    view = SamplingView(REQUEST)
    qtbot.addWidget(view)
    (*texts, tool) = shown_boxes(view)
    assert tool[0] == "The server's tool “lo⟨U+202E⟩ok”, which the model may call"
    assert tool[1].startswith("Looks at a thing.\n\n{")
    assert '"of": {' in tool[1]
    assert texts == [
        ("The server asks", "Name a colour."),
        ("Call of “look” by a model, according to the server", '{\n  "of": "sky"\n}'),
        ("Result of “look”, according to the server", "It is\ndark."),
        ("Call of “look” by a model, according to the server 2", "{}"),
        ("Error of “look”, according to the server", "No."),
    ]
    words = "\n".join(label.text() for label in view.findChildren(QLabel))
    assert "may ask the server to use tools of its own" in words
    assert "no tools are used" not in words


def test_what_names_a_box_wraps(qtbot):
    view = SamplingView(REQUEST)
    qtbot.addWidget(view)
    assert all(label.wordWrap() for label in view.findChildren(QLabel))


def test_what_tools_say_counts_in_the_price():
    plain = SamplingRequest("Notes", (("user", "x"),), None, 1, MODEL)
    large = ToolSpec("a", "x" * 4_000_000, {})
    with_tools = SamplingRequest("Notes", (("user", "x"),), None, 1, MODEL, tools=(large,))
    assert "about $3.00 at most" in " ".join(describe_model(with_tools))
    assert "$3.00" not in " ".join(describe_model(plain)).split("at most (")[0]


def test_calls_of_the_answer_are_shown_before_they_go(qtbot):
    view = SamplingView(REQUEST, SamplingAnswer("", "m", calls=(CALL,)))
    qtbot.addWidget(view)
    assert shown_boxes(view)[0] == ("The model calls the server's tool “look”", '{\n  "of": "sky"\n}')
    assert view.message_box is not None
    view_of_both = SamplingView(REQUEST, SamplingAnswer("Let me look.", "m", calls=(CALL,)))
    qtbot.addWidget(view_of_both)
    assert [name for name, _ in shown_boxes(view_of_both)][:2] == [
        "The model's answer",
        "The model calls the server's tool “look”",
    ]


def test_every_word_is_translated(qtbot, marked):
    messages = (
        ("user", "α"),
        ("assistant", ToolUse(id="a", name="λ", input={})),
        ("user", ToolResult(tool_use_id="a", content=(Text(text="μ"),), outcome=Outcome.FAILED)),
    )
    model = SamplingModel("ν", "ξ", "ο", Price(input=3, output=15))
    request = SamplingRequest("κ", messages, "ι", 1000, model, tools=(ToolSpec("π", "ρ", {}),))
    for answer in (None, SamplingAnswer("σ", "τ", calls=(ToolUse(id="b", name="λ", input={}),))):
        view = SamplingView(request, answer)
        qtbot.addWidget(view)
        view.show()
        assert bare_texts(view) == []
