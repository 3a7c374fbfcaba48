"""What the screens hear of a waiting call: with the real tools, arguments and rules behind it."""

import asyncio
from types import SimpleNamespace

import pytest

from desktop_agent.permissions.approvals import Approval, explain_line
from desktop_agent.permissions.gate import Ask
from desktop_agent.permissions.hard_denies import UNCLEAR
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.decorator import schema_from_signature
from desktop_agent.tools.json_schema import JsonSchema
from desktop_agent.tools.tool import Tool
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import CommandPreview, TextPreview, UntrustedSource
from ui.bridge.permissions import Approvals, _pending_approval

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
RULE = Sentence("A rule wants this to be asked.")


class Counted(JsonSchema):
    checks = 0

    def checked(self, arguments):
        self.checks += 1
        return super().checked(arguments)


async def _run(*_arguments):
    return ()


def waiting(tool, arguments, preview=None, reasons=()):
    async def ask():
        verdict = Ask("digest", reasons)
        approval = Approval("a", ToolUse(id="c", name=tool.name, input=arguments), tool, preview, verdict=verdict)
        return _pending_approval(approval, (), "", is_in_memory=False)

    return asyncio.run(ask())


def command(line):
    parts, understood = explain_line(line)
    return CommandPreview(line, "/work", "Not confined.", parts, understood)


async def _for_ever(_arguments):
    await asyncio.Event().wait()


async def _broken(_arguments):
    raise LookupError("secret")


@pytest.mark.parametrize(("preview", "kind"), [(_broken, "LookupError"), (_for_ever, "TimeoutError")])
def test_a_preview_of_edited_arguments_that_cannot_be_made_says_so(monkeypatch, preview, kind):
    monkeypatch.setattr("ui.bridge.permissions._PREVIEW_SECONDS", 0.01)
    tool = Tool("write", "Writes.", JsonSchema(TEXT), _run, preview=preview)

    async def ask():
        approval = Approval("a", ToolUse(id="c", name="write", input={}), tool, None, verdict=Ask("digest", ()))
        session = SimpleNamespace(approvals=SimpleNamespace(open_approvals=(approval,)))
        return await Approvals(session).preview("a", {"text": "edited"})

    preview_shown = asyncio.run(ask())
    assert isinstance(preview_shown, TextPreview)
    assert str(preview_shown.text) == f"The effect of this call cannot be shown ({kind})."


def test_the_name_of_a_server_takes_no_look_at_the_arguments():
    schema, calls = Counted(TEXT), []

    def brings(arguments):
        calls.append(arguments)
        return UntrustedSource("mcp", "Tickets", "tickets")

    call = waiting(Tool("tickets__write", "Writes.", schema, _run, brings=brings), {"text": "x" * 1000})
    assert (call.server, call.server_description) == ("Tickets", "Writes.")
    assert (schema.checks, calls) == (0, [{"text": "x" * 1000}])
    assert call.validate({"text": 1}) is not None
    assert schema.checks == 1


def test_what_comes_from_the_web_is_of_no_server():
    def get_page(url: str) -> None:
        """Looks."""

    def brings(_arguments):
        return UntrustedSource("web", "example.org")

    for schema in (JsonSchema(TEXT), schema_from_signature(get_page)):
        call = waiting(Tool("look", "Looks.", schema, _run, brings=brings), {"url": "https://example.org"})
        assert (call.server, call.server_description) == ("", "")


def test_that_a_line_is_not_understood_is_said_once():
    tool = Tool("run_command", "Runs.", JsonSchema({"type": "object"}), _run)
    reasons = (UNCLEAR, RULE)
    assert waiting(tool, {}, command("eval $X"), reasons).reasons == (RULE,)
    # Elsewhere nothing else says it.
    assert waiting(tool, {}, command("ls -l"), reasons).reasons == reasons
    assert waiting(tool, {}, None, reasons).reasons == reasons


class OneWaits:
    """The part of a session that the screens use for waiting calls."""

    is_in_memory = False

    def __init__(self, permission_policy, approval):
        self.permission_policy = permission_policy
        self.approvals = SimpleNamespace(open_approvals=(approval,))
        self.record = SimpleNamespace(workspace=None)


def test_only_those_outside_who_were_shown_are_trusted():
    first, later = (UntrustedSource("web", "a command that used the network", name) for name in ("1", "2"))

    async def trusted_after(*sources):
        permission_policy = PermissionPolicy()
        for source in sources:
            permission_policy.mark_untrusted(source)
        tool = Tool("run_command", "Runs.", JsonSchema({"type": "object"}), _run)
        verdict = Ask("digest", (permission_policy.untrusted_content.suspension.why,))
        approval = Approval("a", ToolUse(id="c", name=tool.name, input={}), tool, verdict=verdict)
        approvals = Approvals(OneWaits(permission_policy, approval))
        assert approvals.waiting()[0].untrusted_sources == tuple(source.name for source in sources)
        permission_policy.mark_untrusted(later)
        approvals.trust()
        return permission_policy.untrusted_content.sources

    assert asyncio.run(trusted_after(first)) == (later,)
    assert asyncio.run(trusted_after(first, later)) == ()


def test_edited_arguments_are_looked_at_as_the_decision_will_be():
    def careless(arguments):
        raise KeyError(arguments)

    deep: object = 1
    for _ in range(250):
        deep = [deep]
    tool = Tool("tickets__write", "Writes.", JsonSchema({"type": "object"}), _run)
    call = waiting(tool, {"text": "as asked"})
    assert call.validate({"text": "edited"}) is None
    assert "nested too deep" in str(call.validate({"text": deep}))
    assert call.validate({"text": float("inf")}) is not None
    schema = SimpleNamespace(json_schema={}, checked=careless)
    assert waiting(Tool("own", "Its check fails.", schema, _run), {}).validate({}) is not None
