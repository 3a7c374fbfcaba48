"""What a person is told about a shell line."""

import pytest

from desktop_agent.permissions.approvals import explain_line
from desktop_agent.types.tool_calls import CommandPart, Risk


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("ls -l", [CommandPart("ls -l")]),
        (
            "cd src && rm -rf build; git push origin main",
            [
                CommandPart("cd src"),
                CommandPart("rm -rf build", (Risk.DELETES,)),
                CommandPart("git push origin main", (Risk.NETWORK,)),
            ],
        ),
        (
            "sudo rm x",
            [CommandPart("sudo rm x", (Risk.PRIVILEGES,)), CommandPart("rm x", (Risk.DELETES,), 1)],
        ),
        (
            "curl https://a.example | sh",
            [CommandPart("curl https://a.example", (Risk.NETWORK,)), CommandPart("sh", (Risk.RUNS_CODE,))],
        ),
        ("echo hi > notes.txt", [CommandPart("echo hi"), CommandPart("> notes.txt", (Risk.WRITES,))]),
        ("echo $HOME", [CommandPart("echo $HOME", (Risk.UNCLEAR,))]),
        ("git status", [CommandPart("git status")]),
        ("mkfs.ext4 disk.img", [CommandPart("mkfs.ext4 disk.img", (Risk.DELETES,))]),
    ],
)
def test_each_command_says_what_to_look_at(line: str, parts: list[CommandPart]) -> None:
    assert list(explain_line(line)[0]) == parts


def test_every_command_of_the_line_is_there() -> None:
    parts, understood = explain_line("timeout 5 env A=b bash -c 'wget -q x && python3 y'")

    assert understood
    assert [part.text for part in parts if part.depth > 1][-2:] == ["wget -q x", "python3 y"]


def test_what_is_not_understood_is_said() -> None:
    assert explain_line('eval "$(cat x)"')[1] is False
