from collections.abc import Callable

import pytest

from desktop_agent.permissions.hard_denies import (
    DISKS,
    EVERYTHING,
    FORK_BOMB,
    KEYS,
    OWN_FILES,
    HardAsk,
    HardDeny,
    ProtectedPaths,
    find_hard_verdict,
)
from desktop_agent.permissions.rule_matching import CallFacts
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import CommandSubject, PathSubject
from desktop_agent.types.tool_calls import Effect, ToolClass

MakeTool = Callable[..., AnyTool]
GROUNDS = ProtectedPaths(("/data/app",), "/data/app/demo")

NEVER = [
    ("rm -rf /", EVERYTHING),
    ("rm -r -f -- /", EVERYTHING),
    ("rm -fR /*", EVERYTHING),
    ("rm --recursive ~", EVERYTHING),
    ("rm -rf ~/", EVERYTHING),
    ('rm -rf "$HOME"', EVERYTHING),
    ("rm -rf ${HOME}/*", EVERYTHING),
    ("rm -rf //", EVERYTHING),
    ("rm -rf /tmp/..", EVERYTHING),
    ("rm -rf /home", EVERYTHING),
    ("/bin/rm -rf /etc", EVERYTHING),
    ("r\\m -rf '/'", EVERYTHING),
    ("ls && sudo rm -rf /", EVERYTHING),
    ("bash -c 'rm -rf /'", EVERYTHING),
    ("echo $(rm -rf /)", EVERYTHING),
    ("find / -delete", EVERYTHING),
    ("chmod -R 777 /", EVERYTHING),
    ("chown -R me /usr", EVERYTHING),
    ("dd if=x of=/dev/sda", DISKS),
    ("cat x > /dev/nvme0n1", DISKS),
    ("cp x /dev/sdb1", DISKS),
    ("mkfs.ext4 /dev/sda1", DISKS),
    ("tee /dev/sda < x", DISKS),
    ("shred /dev/vda", DISKS),
    (":(){ :|:& };:", FORK_BOMB),
    ("bomb() { bomb | bomb & }; bomb", FORK_BOMB),
    ("rm ~/.local/share/keyrings/login.keyring", KEYS),
    ("echo x > $HOME/.local/share/keyrings/a", KEYS),
    ("rm -r /Users/me/Library/Keychains", KEYS),
    ("sqlite3 /data/app/store.db 'drop table x'", OWN_FILES),
    ("sed -i s/a/b/ ~/.local/share/desktop-agent/preferences.json", OWN_FILES),
    ("tee --append /data/app/demo/../store.db", OWN_FILES),
    ("mv x /data/app/", OWN_FILES),
]
WELL = [
    "rm -rf build",
    "rm -rf /tmp/x",
    "rm -rf ./*",
    "rm x /",
    "rm -rf /home/me/project/build",
    "find . -delete",
    "find / -name x",
    "dd if=/dev/sda of=image",
    "cp /dev/sda image",
    "echo x > /dev/null",
    "cat x > /dev/stderr",
    "chmod -R u+w src",
    "cat ~/.local/share/desktop-agent/preferences.json",
    "rm /data/app/demo/a.txt",
    "rm /data/apple",
    "echo 'rm -rf /'",
    "f() { g | h & }; f",
]
UNCLEAR = ["rm -rf $x", 'rm -rf "$(cat list)"', "ls | xargs rm -rf", "dd of=$x", "eval $x", "broken ("]


@pytest.fixture
def shell(make_open_tool: MakeTool) -> AnyTool:
    return make_open_tool([Effect.EXECUTE])


@pytest.mark.parametrize(("line", "reason"), NEVER)
def test_catastrophic_lines_are_denied_whatever_rules_allow(shell: AnyTool, line: str, reason: Sentence) -> None:
    verdict = find_hard_verdict(CallFacts(shell, "d", (CommandSubject(line),)), GROUNDS)
    assert verdict == HardDeny(reason)


@pytest.mark.parametrize("line", WELL)
def test_lines_that_only_look_catastrophic_have_no_hard_verdict(shell: AnyTool, line: str) -> None:
    assert find_hard_verdict(CallFacts(shell, "d", (CommandSubject(line),)), GROUNDS) is None


@pytest.mark.parametrize("line", UNCLEAR)
def test_lines_that_may_be_catastrophic_are_always_asked_about(shell: AnyTool, line: str) -> None:
    verdict = find_hard_verdict(CallFacts(shell, "d", (CommandSubject(line),)), GROUNDS)
    assert isinstance(verdict, HardAsk)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/data/app/store.db", OWN_FILES),
        ("/data/app", OWN_FILES),
        ("/data/app/demo/../store.db", OWN_FILES),
        ("/DATA/App/store.db", OWN_FILES),
        ("/home/me/.local/share/desktop-agent/store.db", OWN_FILES),
        ("C:/Users/me/AppData/Local/desktop-agent/store.db", OWN_FILES),
        ("/home/me/.local/share/keyrings/login.keyring", KEYS),
        ("/data/app/demo/a.txt", None),
        ("/data/application", None),
        ("/home/me/keyrings/a", None),
    ],
)
def test_files_that_no_call_writes(make_open_tool: MakeTool, path: str, reason: Sentence | None) -> None:
    writing = make_open_tool([Effect.WRITE])
    reading = make_open_tool([Effect.READ], tool_class=ToolClass.READ_ONLY)
    verdict = find_hard_verdict(CallFacts(writing, "d", (PathSubject(path),)), GROUNDS)
    assert verdict == (None if reason is None else HardDeny(reason))
    assert find_hard_verdict(CallFacts(reading, "d", (PathSubject(path),)), GROUNDS) is None


def test_the_workspace_is_no_way_into_the_own_folder(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.WRITE])
    for workspace in ("/data/app", "/data", "/data/app/dem", None):
        verdict = find_hard_verdict(
            CallFacts(tool, "d", (PathSubject("/data/app/demo/a"),)), ProtectedPaths(("/data/app",), workspace)
        )
        assert verdict is not None
