"""What a model reads when the sandbox was the reason for a failure; the failures are those of real programs."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.sandbox.backends import Sandbox, bubblewrap_sandbox, landlock_sandbox, no_sandbox
from desktop_agent.sandbox.policy import SandboxPolicy
from desktop_agent.tools.commands.execution import explain_refusals, refusal_hints
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import ToolFailed
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox

PYTHON = str(Path(sys.executable).resolve())
NO_NETWORK = "[This command had no network, as it named no host. Name with hosts each one that it must reach.]"


async def run_line(workspace: Workspace, confinement: Sandbox, line: str, **more: object) -> str:
    tool = run_command(workspace, confinement=lambda: confinement)
    (part,) = await tool.run(tool.checked({"command": line, **more}), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


async def test_what_cannot_be_written(workspace: Workspace) -> None:
    output = await run_line(
        workspace, working_sandbox("bubblewrap"), "mkdir ~/.of-a-test; touch /usr/of-a-test; echo x >here"
    )
    assert "[“Read-only file system” comes from the confinement: a command writes only in the workspace" in output
    output = await run_line(workspace, working_sandbox("Landlock"), "touch /usr/of-a-test")
    assert "[“Permission denied” may come from the confinement" in output


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_settings_of_git(workspace: Workspace) -> None:
    await run_line(workspace, working_sandbox("bubblewrap"), "git init -q .")
    for line in ("git config user.name x", "git remote add o https://example.org/x", "echo x >.git/hooks/x"):
        output = await run_line(workspace, working_sandbox("bubblewrap"), line)
        assert "[Hooks and settings of git repositories in the workspace are kept from commands" in output, line


async def test_the_network_that_was_not_asked_for(workspace: Workspace) -> None:
    line = f"""'{PYTHON}' -c 'import urllib.request as u; u.urlopen("http://example.org")'"""
    assert NO_NETWORK in await run_line(workspace, working_sandbox("bubblewrap"), line)
    with pytest.raises(ToolFailed) as failed:
        await run_line(workspace, working_sandbox("bubblewrap"), f"{line}; sleep 43212", timeout_seconds=6)
    assert NO_NETWORK.strip("[]") in str(failed.value)


async def test_sockets_with_a_path(workspace: Workspace) -> None:
    line = f"""'{PYTHON}' -c 'import multiprocessing as m; m.Manager()'"""
    output = await run_line(workspace, working_sandbox("bubblewrap"), line)
    assert "[Sockets with a path (unix sockets) cannot be made in the confinement" in output
    assert "and without the network no others either" in await run_line(workspace, working_sandbox("Landlock"), line)


async def test_temporary_files_of_the_command_before(workspace: Workspace) -> None:
    confinement = working_sandbox("bubblewrap")
    assert await run_line(workspace, confinement, "echo x >/tmp/of-a-test; cat /tmp/of-a-test") == "x\n[exit code 0.]"
    for line in ("cat /tmp/of-a-test", f"""'{PYTHON}' -c 'open("/tmp/of-a-test")'"""):
        output = await run_line(workspace, confinement, line)
        assert "[What a command leaves in /tmp and in $TMPDIR is gone when it has ended" in output, line


async def test_of_what_has_other_reasons_nothing_is_said(workspace: Workspace) -> None:
    for name in ("bubblewrap", "Landlock"):
        output = await run_line(workspace, working_sandbox(name), 'cat "$PWD/none"; false')
        assert output.endswith("/none: No such file or directory\n[exit code 1.]")
    line = "echo Read-only file system, Could not resolve host"
    assert (await run_line(workspace, no_sandbox(), line)).endswith("host\n[exit code 0.]")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("npm error code EROFS", "Read-only"),
        ("npm error code EAI_AGAIN", "no network"),
        ("ERROR: No matching distribution found for requests", "no network"),
        ('Get "https://x": dial tcp: lookup x', "no network"),
        ('sudo: The "no new privileges" flag is set, which prevents sudo from running as root.', "sudo and su"),
        ("su: System error", "sudo and su"),
        ("ls: cannot access '/tmp/y': No such file or directory", "$TMPDIR is gone"),
        ("cat: /home/me/notes: No such file or directory", "Of home folders and other disks"),
        ("result: fine, issue: none", ""),
    ],
)
def test_errors_of_programs_that_may_not_be_installed_are_explained(output: str, expected: str) -> None:
    explanation = explain_refusals(output, "bubblewrap", "/work", network=False)
    assert expected in explanation
    assert bool(explanation) == bool(expected)


@pytest.mark.parametrize(
    ("confinement", "kernel", "are_counted"),
    [
        ("bubblewrap", "5.14.0-1-amd64", True),
        ("bubblewrap", "6.1.0", True),
        ("bubblewrap", "5.13.19", False),
        ("Landlock", "6.1.0", False),
    ],
)
def test_processes_are_counted_where_others_of_the_person_do_not_count(
    confinement: str, kernel: str, are_counted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.release", lambda: kernel)
    policy = SandboxPolicy((tmp_path,), (), is_read_only=True)
    sandbox = bubblewrap_sandbox("bwrap") if confinement == "bubblewrap" else landlock_sandbox()
    argv = sandbox.command(["true"], tmp_path, policy)
    assert any("NPROC" in word for word in argv) == are_counted
    explanation = explain_refusals("MemoryError", confinement, "/work", network=False, is_read_only=True)
    assert ("2 GB of memory" in explanation, "1,024" in explanation) == (True, are_counted)


@pytest.mark.parametrize("confinement", ["bubblewrap", "Landlock"])
@pytest.mark.parametrize("text", ["except MemoryError:", "Read-only file system", "# Permission denied"])
async def test_what_a_reader_shows_is_a_refusal_only_where_it_failed(
    text: str, confinement: str, workspace: Workspace
) -> None:
    (workspace.folder / "a.py").write_text(text)
    tool = run_command(workspace, confinement=lambda: replace(working_sandbox(confinement), is_enforced=True))

    async def run(line: str) -> str:
        call = RunningCall("1", lambda _: None, is_read_only=True)
        (part,) = await tool.run(tool.checked({"command": line}), call)
        return part.text  # type: ignore[union-attr]

    assert await run("cat a.py") == f"{text}\n[exit code 0.]"
    assert "The command" in await run("cat a.py; exit 1")


def test_cargo_without_its_settings() -> None:
    output = "error: could not load Cargo configuration\n  Permission denied (os error 13)\n"
    assert "settings of cargo" in explain_refusals(output, "Landlock", "/work", network=False)


def test_with_hosts_the_hint_is_about_the_proxy() -> None:
    explanation = explain_refusals("ssh: Could not resolve hostname x", "bubblewrap", "/work", network=True)
    assert explanation.startswith("The hosts that this command named are reached through the proxy")
    assert explain_refusals("No matching distribution found", "bubblewrap", "/work", network=True) == ""
    assert explain_refusals("Could not resolve host: x", "Landlock", "/work", network=True) == ""


async def test_who_is_not_confined_is_told_nothing_of_a_confinement(workspace: Workspace) -> None:
    """Whatever a program writes, and whatever the title of the command says of the network."""
    signs = [
        part
        for hint in refusal_hints()
        for sign in hint.patterns
        for part in ([sign] if isinstance(sign, str) else sign)
    ]
    (workspace.folder / "words").write_text("\n".join(signs) + "\n" + " ".join(signs) + "\n")
    for hosts in ([], ["example.org"]):
        output = await run_line(workspace, no_sandbox(), "cat words; exit 1", hosts=hosts)
        assert output == (workspace.folder / "words").read_text() + "[exit code 1.]"
        with pytest.raises(ToolFailed) as failed:
            await run_line(workspace, no_sandbox(), "cat words; sleep 43212", hosts=hosts, timeout_seconds=3)
        assert "onfine" not in str(failed.value)
        assert "had no network" not in str(failed.value)
    assert "comes from the confinement" in await run_line(workspace, working_sandbox("bubblewrap"), "cat words")
