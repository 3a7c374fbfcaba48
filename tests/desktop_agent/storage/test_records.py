import json

import pytest

from desktop_agent.storage.records import Draft, draft_to_json, message_to_json, read_draft, read_event, read_message
from desktop_agent.types.blocks import Text, Unknown
from desktop_agent.types.messages import AttachedText, Message, MessageState, Role
from desktop_agent.types.tool_calls import UntrustedSource


def read_text_as_message(text: str) -> Message:
    return read_message(text, id_="id", role="user", state="complete")


def test_a_block_of_the_future_is_unknown_and_the_rest_stays() -> None:
    data = json.loads(message_to_json(Message(id="id", role=Role.ASSISTANT, blocks=(Text(text="a"),), model="m")))
    future = {"type": "hologram", "depth": 3}
    data["blocks"] += [future, {"type": "text", "text": "b", "glow": 1}, 5]
    message = read_text_as_message(json.dumps(data))
    assert message.blocks == (
        Text(text="a"),
        Unknown(raw=future),
        Unknown(raw={"type": "text", "text": "b", "glow": 1}),
        Unknown(raw=5),
    )
    assert (message.id, message.role, message.model) == ("id", Role.ASSISTANT, "m")
    assert message.created_at.isoformat().replace("+00:00", "Z") == data["created_at"]


def test_fields_of_the_future_cost_only_themselves() -> None:
    data = json.loads(message_to_json(Message(id="id", role=Role.USER, blocks=(Text(text="a"),), model="m")))
    data |= {"mood": "good", "stop_reason": "bored", "state": "dreaming", "usage": {"input_tokens": -1}}
    message = read_text_as_message(json.dumps(data))
    assert (message.text, message.model, message.stop_reason, message.usage) == ("a", "m", None, None)
    assert message.state is MessageState.COMPLETE


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"blocks": 3}', "{" * 2000, "[" * 100_000, '{"id": "\\ud8"}'])
def test_a_damaged_message_is_shown_as_what_is_left_of_it(text: str) -> None:
    message = read_message(text, id_="id", role="wizard", state="odd")
    assert message.blocks == (Unknown(raw=text),)
    assert (message.id, message.role, message.state) == ("id", Role.ASSISTANT, MessageState.INTERRUPTED)
    assert Message.model_validate_json(message_to_json(message)) == message


def test_a_damaged_draft_keeps_its_text() -> None:
    assert read_draft(draft_to_json(Draft("x"))) == Draft("x")
    assert read_draft('{"text": "kept", "images": [{"type": "hologram"}]}') == Draft("kept")
    assert read_draft("{") == Draft()


@pytest.mark.parametrize(
    "text", ["", "null", '{"type": "from_the_future"}', '{"type": "done", "more": 1', "[" * 100_000]
)
def test_an_unknown_event_is_none(text: str) -> None:
    assert read_event(text) is None


def test_a_draft_of_before_servers_had_ids_loads_and_a_new_one_comes_back_whole() -> None:
    old = read_draft('{"text": "a", "outside": ["Files"], "resources": [' + _OLD_RESOURCE + "]}")
    assert old.outside == (UntrustedSource("mcp", "Files"),)
    assert (old.resources[0].text, old.resources[0].server_id) == ("decided", "")
    new = Draft(
        "a",
        resources=(AttachedText("W", "x", "n://1", "Files", "files"),),
        outside=(UntrustedSource("mcp", "F", "f"),),
        pasted=("long",),
    )
    assert read_draft(draft_to_json(new)) == new


_OLD_RESOURCE = '{"server": "Files", "title": "Week", "uri": "notes://1", "text": "decided"}'
