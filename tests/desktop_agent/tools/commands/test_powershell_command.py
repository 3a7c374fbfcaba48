"""The command tool of Windows, with a script in place of PowerShell."""

import asyncio
import base64
import json
import tempfile
from pathlib import Path

import pytest

from desktop_agent.permissions.gate import Ask, Denied
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools import builtin_tools as builtin
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.commands.powershell_command import RunPowerShellInput, run_powershell
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Outcome, Text, ToolUse
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import CommandPattern, CommandSubject, Rule, RuleEffect
from desktop_agent.types.tool_calls import AllowOnce, CommandPart, CommandPreview, Risk
from tests.desktop_agent.engine.test_taking_back import Office, card
from tests.desktop_agent.tools.commands.test_powershell import make_powershell
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import LIMIT, results_of
from tests.frame.children import Children

LINE = "if ($x) { GIT.exe push }; rm $old"
# As a parser it lists the commands of LINE; as a shell it prints what it was given.
BODY = """
if is_parser:
    words = [["if", "GIT.exe push", ["GIT.exe", "push"]], ["rm", "rm $old", ["rm", None]]]
    commands = [{"text": text, "words": list} for _, text, list in words]
    line = base64.b64decode(sys.stdin.read()).decode()
    answer = {"commands": commands if "push" in line else [], "problem": "" if "push" in line else "Missing '}'."}
    print(base64.b64encode(json.dumps(answer).encode()).decode(), end="")
else:
    line = script.split("\\n", 1)[1]
    print(line, os.getcwd(), os.environ["TEMP"] == os.environ["TMP"] and os.path.isdir(os.environ["TEMP"]))
    print("SECRET" in "".join(os.environ), flush=True)
    if "wait" in line:
        time.sleep(500)
    sys.exit(3)
"""


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_powershell(tmp_path_factory.mktemp("programs"), BODY)


@pytest.fixture
def tool(workspace: Workspace, program: str) -> Tool[RunPowerShellInput]:
    return run_powershell(workspace, lambda: program)


def call() -> RunningCall:
    return RunningCall("1", lambda _: None)


def use(line: str) -> ToolUse:
    return ToolUse(id="c", name="run_command", input={"command": line})


async def test_a_line_runs_in_the_folder_with_its_own_temporary_one(
    tool: Tool[RunPowerShellInput],
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("SECRET", "hush")
    (workspace.folder / "sub").mkdir()
    (part,) = await tool.run(tool.checked({"command": "Get-Date\n'ü'", "folder": "sub"}), call())
    assert part == Text(text=f"Get-Date\n'ü' {workspace.folder}/sub True\nFalse\n[exit code 3.]")
    assert list(temporary.iterdir()) == []


async def test_a_null_character_and_a_missing_powershell_are_refused(
    tool: Tool[RunPowerShellInput], workspace: Workspace
) -> None:
    with pytest.raises(ToolFailed, match="null character"):
        await tool.run(tool.checked({"command": "a\0b"}), call())
    none = run_powershell(workspace, lambda: None)
    with pytest.raises(ToolFailed, match="no PowerShell"):
        await none.run(none.checked({"command": "a"}), call())
    preview = await (none.preview or pytest.fail)(none.checked({"command": "a"}))
    assert isinstance(preview, CommandPreview)
    assert (preview.line, preview.parts) == ("a", ())


async def test_the_dialog_says_that_it_is_not_confined_and_what_would_run(tool: Tool[RunPowerShellInput]) -> None:
    assert tool.preview is not None
    preview = await tool.preview(tool.checked({"command": LINE}))
    assert isinstance(preview, CommandPreview)
    assert str(preview.confinement).startswith("Not confined: the command can read, change and send whatever you can. ")
    assert "no sandbox on Windows" in str(preview.confinement)
    assert preview.parts == (CommandPart("GIT.exe push"), CommandPart("rm $old", (Risk.DELETES, Risk.UNCLEAR)))
    assert (preview.language, preview.understood) == ("powershell", False)
    wrong = await tool.preview(tool.checked({"command": "{"}))
    assert isinstance(wrong, CommandPreview)
    assert (wrong.parts, wrong.problem) == ((), "Missing '}'.")


async def test_the_commands_inside_are_lines_to_rules(tool: Tool[RunPowerShellInput]) -> None:
    assert tool.subjects is not None
    assert await tool.subjects(tool.checked({"command": LINE})) == (
        CommandSubject(LINE),
        CommandSubject("git push"),
        CommandSubject('rm "$_"'),
    )


async def test_a_line_is_parsed_once(tool: Tool[RunPowerShellInput], workspace: Workspace, tmp_path: Path) -> None:
    # If the preview differed before the start, the person would be asked again.
    answer = base64.b64encode(json.dumps({"commands": [], "problem": ""}).encode()).decode()
    count = tmp_path / "count"
    counting = make_powershell(tmp_path / "bin", f"open({str(count)!r}, 'a').write('x'); print({answer!r}, end='')")
    tool = run_powershell(workspace, lambda: counting)
    params = tool.checked({"command": "ls"})
    assert tool.preview is not None
    assert tool.subjects is not None
    assert await tool.preview(params) == await tool.preview(params)
    await tool.subjects(params)
    assert count.read_text() == "x"


async def test_it_is_asked_whatever_rules_allow_and_denied_where_they_deny(tool: Tool[RunPowerShellInput]) -> None:
    git_push = CommandPattern(words=("git", "push"), folder=None)
    allows = [Rule(effect=RuleEffect.ALLOW, tool="run_command", pattern=pattern) for pattern in (None, git_push)]
    for line in (LINE, "git push", "Get-ChildItem"):
        verdict = await PermissionPolicy(allows).verdict(use(line), tool)
        assert isinstance(verdict, Ask)
        assert "On Windows nothing confines a command" in verdict.reason
    denies = Rule(effect=RuleEffect.DENY, tool="run_command", pattern=git_push)
    assert isinstance(await PermissionPolicy([*allows, denies]).verdict(use(LINE), tool), Denied)
    assert isinstance(await PermissionPolicy([*allows, denies]).verdict(use("ls"), tool), Ask)


def test_windows_has_this_one_under_the_same_name(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert next(tool for tool in builtin_tools(workspace, "all") if tool.name == "run_command").always_asked is None
    monkeypatch.setattr(builtin, "IS_WINDOWS", True)
    (powershell,) = [tool for tool in builtin_tools(workspace, "all") if tool.name == "run_command"]
    assert powershell.always_asked is not None
    assert powershell.identity == run_command(workspace).identity


@pytest.fixture
def on_windows(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "IS_WINDOWS", True)
    monkeypatch.setenv("PATH", str(Path(program).parent), prepend=":")


async def test_in_a_conversation_it_is_asked_about_and_runs_once_allowed(tmp_path: Path, on_windows: None) -> None:
    asks = Turn(ToolUse(id="1", name="run_command", input={"command": "git push"}))
    async with Office(tmp_path, asks, Turn()) as office:
        session = office.new_session()
        session.permission_policy.add(Rule(effect=RuleEffect.ALLOW, tool="run_command"))
        session.send(Message.user("go"))
        id_ = await card(session)
        (approval,) = session.approvals.open_approvals
        assert isinstance(approval.preview, CommandPreview)
        assert str(approval.preview.confinement).startswith("Not confined: ")
        assert approval.proposals == ()
        session.approvals.answer(id_, AllowOnce())
        async with asyncio.timeout(LIMIT):
            await session.wait_idle()
        (result,) = results_of(session.history).values()
        assert result.outcome is Outcome.SUCCEEDED
        assert isinstance(result.content[0], Text)
        assert result.content[0].text.startswith("git push ")


async def test_stop_ends_it(tool: Tool[RunPowerShellInput], new_children: Children) -> None:
    begun = asyncio.Event()
    running = asyncio.ensure_future(
        tool.run(tool.checked({"command": "wait"}), RunningCall("1", lambda _: begun.set()))
    )
    async with asyncio.timeout(LIMIT):
        await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not new_children()
