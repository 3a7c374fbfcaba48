"""The command line of PowerShell, and what its parser answers; a script stands in for PowerShell."""

import base64
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.tools.commands import powershell as module
from desktop_agent.tools.commands.powershell import (
    ParsedScript,
    PowerShellCommand,
    find_powershell,
    parse_line,
    powershell_command,
    read_answer,
)
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.tool_calls import Risk

LINE = "git push; Remove-Item $old -Recurse"


def encoded(answer: object) -> str:
    return base64.b64encode(json.dumps(answer).encode()).decode()


def about_line(**more: Any) -> dict[str, Any]:
    commands = [
        {"text": "git push", "words": ["git", "push"]},
        {"text": "Remove-Item $old -Recurse", "words": ["Remove-Item", None, "-Recurse"]},
    ]
    return {"commands": commands, "problem": "", **more}


def make_powershell(folder: Path, body: str) -> str:
    """Make a Python program that stands in for PowerShell. `script` is its last argument."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "pwsh.exe"
    head = "import os, sys, time, json, base64\nscript = sys.argv[-1]\nis_parser = 'ParseInput' in script\n"
    program.with_suffix(".py").write_text(head + body)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {folder}/pwsh.py "$@"\n')
    program.chmod(0o755)
    return str(program)


def split_as_windows_does(joined: str) -> list[str]:
    """Split a command line (learn.microsoft.com, "Parsing C command-line arguments")."""
    words, word, is_quoted, has_word, slashes = list[str](), "", False, False, 0
    for char in [*joined, " "]:
        if char == "\\":
            slashes, has_word = slashes + 1, True
            continue
        if char == '"':
            word += "\\" * (slashes // 2)
            if slashes % 2:
                word += '"'
            else:
                is_quoted = not is_quoted
            slashes, has_word = 0, True
            continue
        word, slashes = word + "\\" * slashes, 0
        if char in " \t" and not is_quoted:
            words += [word] if has_word else []
            word, has_word = "", False
        else:
            word, has_word = word + char, True
    return words


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        'Write-Output "a  b" \'c\' "`"d`""',
        'a\\\\" b\\',
        'C:\\Program Files\\x\\ "\\\\server\\"',
        "echo 1\r\necho 2\n\techo 3",
        "Write-Output 'Grüße, 世界 😀'",
        "-",
        "/c -File x.ps1",
        "%PATH% & whoami | more > x ^",
        "'",
        '"',
        "$(Get-Item x)`n",
    ],
)
def test_a_line_is_one_word_of_the_command_line_whatever_is_in_it(line: str) -> None:
    words = powershell_command("C:\\Program Files\\PowerShell\\7\\pwsh.exe", line)
    assert split_as_windows_does(subprocess.list2cmdline(words)) == words
    assert words[1:5] == ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"]
    assert len(words) == 6
    assert words[5].split("\n", 1)[1] == line


def test_what_no_command_line_can_hold_is_refused() -> None:
    with pytest.raises(ToolFailed, match="null character"):
        powershell_command("pwsh.exe", "echo a\0b")
    assert powershell_command("pwsh.exe", "x" * 20_000)
    # A quote takes two characters, and each of these characters takes two UTF-16 units.
    for line in ('"' * 20_000, "😀" * 20_000):
        with pytest.raises(ToolFailed, match="too long"):
            powershell_command("pwsh.exe", line)


def test_powershell_7_is_taken_before_that_of_windows_and_none_of_the_workspace(tmp_path: Path) -> None:
    workspace, old = tmp_path / "work", tmp_path / "win" / "System32" / "WindowsPowerShell" / "v1.0" / "powershell.exe"
    environment = {"SYSTEMROOT": str(tmp_path / "win"), "PROGRAMFILES": str(tmp_path / "programs")}
    environment["PATH"] = os.pathsep.join((".", str(workspace), str(tmp_path / "bin")))
    workspace.mkdir()
    assert find_powershell(environment, workspace) is None
    for path in (workspace / "pwsh.exe", old):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_powershell(environment, workspace) == str(old)
    for path in (tmp_path / "bin" / "pwsh.exe", tmp_path / "programs" / "PowerShell" / "7" / "pwsh.exe"):
        path.parent.mkdir(parents=True)
        path.touch()
        assert find_powershell(environment, workspace) == str(path)


def test_names_are_compared_as_windows_does() -> None:
    for word in ("Remove-Item", "rm", "C:\\x y\\RM.EXE", "./rm.cmd"):
        command = PowerShellCommand(text="x", words=(word, "a"))
        assert (command.name in ("remove-item", "rm"), command.risks) == (True, (Risk.DELETES,))
    unknown = PowerShellCommand(text="& $x", words=(None,))
    assert (unknown.name, unknown.risks) == ("", (Risk.UNCLEAR,))


def test_an_answer_is_read() -> None:
    script = read_answer(encoded(about_line(problem="Missing }")) + "\r\n", LINE)
    assert script is not None
    assert script.problem == "Missing }"
    assert [(command.name, command.risks) for command in script.commands] == [
        ("git", ()),
        ("remove-item", (Risk.DELETES, Risk.UNCLEAR)),
    ]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "not base64",
        base64.b64encode(b"\xff\xfe").decode(),
        base64.b64encode(b"[" * 100_000).decode(),
        "a warning\n" + encoded(about_line()),
        encoded([]),
        encoded({"commands": []}),
        encoded(about_line(more=1)),
        encoded(about_line(problem=None)),
        encoded(about_line(problem="x" * 10_000)),
        encoded(about_line(commands={"value": [], "Count": 0})),
        encoded(about_line(commands=[{"text": "git push", "words": "git"}])),
        encoded(about_line(commands=[{"text": "git push", "words": [1]}])),
        encoded(about_line(commands=[{"text": "", "words": []}])),
        encoded(about_line(commands=[{"text": "git push", "words": ["git"]}] * 1_000)),
        # The answer to another line.
        encoded(about_line(commands=[{"text": "git pull", "words": ["git", "pull"]}])),
    ],
)
def test_what_is_no_answer_about_the_line_is_none(output: str) -> None:
    assert read_answer(output, LINE) is None


async def test_the_line_reaches_the_parser_as_base64_alone(tmp_path: Path) -> None:
    body = (
        "line = base64.b64decode(sys.stdin.read(), validate=True).decode()\n"
        "answer = {'commands': [], 'problem': json.dumps([line, sys.argv[1:-1], script, os.getcwd()])}\n"
        "print(base64.b64encode(json.dumps(answer).encode()).decode(), end='')\n"
    )
    program = make_powershell(tmp_path / "bin", body)
    line = "Write-Output \"$(x)\" 'é' `\n}; exit"
    script = await parse_line(program, line)
    assert script is not None
    received, options, parser, folder = json.loads(script.problem)
    assert received == line
    assert options == ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"]
    assert "Write-Output" not in parser
    # Base64 has no character that a command line would change.
    assert split_as_windows_does(subprocess.list2cmdline([parser])) == [parser]
    assert folder == str(tmp_path / "bin")


@pytest.mark.parametrize(
    "body",
    [
        "print('what?')",
        f"print({encoded(about_line())!r}, end=''); sys.exit(1)",
        "print('x' * 3_000_000)",
        "time.sleep(500)",
        "os.kill(os.getpid(), 9)",
    ],
    ids=["garbage", "fails", "too large", "too slow", "killed"],
)
async def test_a_parser_that_does_not_answer_is_done_without(
    tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PARSE_SECONDS", 0.5 if "sleep" in body else 60.0)
    assert await parse_line(make_powershell(tmp_path, body), LINE) is None


async def test_what_loads_modules_while_it_is_parsed_is_not_parsed(tmp_path: Path) -> None:
    answer = encoded({"commands": [], "problem": ""})
    program = make_powershell(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'a').close(); print({answer!r}, end='')")
    for line in ("using module ./x.psm1", "Using  Assembly x", "configuration A {}", "Import-DscResource x"):
        assert await parse_line(program, line) is None
    assert not (tmp_path / "ran").exists()
    assert await parse_line(program, "Get-ChildItem") == ParsedScript(commands=(), problem="")


async def test_without_the_program_there_is_no_list(tmp_path: Path) -> None:
    assert await parse_line(str(tmp_path / "pwsh.exe"), LINE) is None
