"""Steps that a provider took on its own servers."""

from desktop_agent.conversation.items import ServerStepItem
from ui.transcript.rows.notice_rows import ServerStepRow
from ui.transcript.rows.row_factory import make_row


def step(text, name="web_search"):
    return ServerStepItem("i", "m", name, text)


def test_a_step_is_one_quiet_line_that_opens(render_context):
    row = make_row(step("Looked for the weather in Oslo. " * 20), render_context, 600)
    assert isinstance(row, ServerStepRow)
    assert row.label == "Server step: Search the web"
    assert len(row.blocks) == 2
    assert row.blocks[1].plain().endswith("…")
    changed = []
    render_context.signals.changed.connect(changed.append)
    row.stack.settle_block(0)
    (head,) = [control for _, control in row.controls() if control.name == "Show details"]
    head.press()
    assert changed == ["i"]
    assert row.unfolded
    assert row.blocks[1].plain().strip() == ("Looked for the weather in Oslo. " * 20).strip()
    assert "weather" in row.spoken_text()


def test_a_short_step_has_nothing_to_open(render_context):
    row = make_row(step("Looked for Oslo."), render_context, 600)
    row.stack.settle_block(0)
    assert row.blocks[1].plain() == "Looked for Oslo."
    assert not list(row.controls())
    assert len(make_row(step(""), render_context, 600).blocks) == 1


def test_hidden_characters_of_a_step_are_seen(render_context):
    row = make_row(step("a\u202eb", name="x\u202ey\n"), render_context, 600)
    assert "\u202e" not in row.label + row.blocks[0].plain() + row.blocks[1].plain()


def test_what_it_did_stands_under_its_name(render_context):
    row = make_row(step("Looked for Oslo."), render_context, 600)
    row.stack.settle(0, 400)
    head, text = row.stack.block_box(0), row.stack.block_box(1)
    assert (head.left(), text.left()) == (0, 24)
    assert head.right() == text.right()
