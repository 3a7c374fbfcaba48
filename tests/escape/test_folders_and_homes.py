"""Rules for one folder in other folders, and workspaces that contain the person's own keys and startup files."""

from pathlib import Path

import pytest

from desktop_agent.permissions.approvals import Approval
from desktop_agent.permissions.rule_proposals import describe_rule
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.permissions import CommandPattern, CommandsPattern, RuleEffect
from desktop_agent.types.tool_calls import AllowAlways, AllowOnce, Decision, Deny
from tests.escape.attack import ATTACK, BAIT, Trial, allows, run, write
from tests.fakes.scripted_provider import Turn

LS = CommandPattern(words=("ls",))
READ_ONLY = CommandsPattern(title="git", beginnings=(("git", "status"),), folder=None)


def prepare(work: Path) -> None:
    for place in (work / "data", work / "scratch" / "data"):
        place.mkdir(parents=True)
        (place / "x").write_text("x")
    for folder, says in ((work, "bad"), (work / "scratch", "good")):
        (folder / "run").write_text(f"#!/bin/sh\ntouch {says}\n")
        (folder / "run").chmod(0o755)


def allow_exact_command(approval: Approval) -> Decision:
    """Always allow the bait by a rule for exactly its command; deny everything else."""
    if approval.tool_use.id != BAIT:
        return Deny()
    return AllowAlways(rule_id=next(rule.id for rule in approval.proposals if isinstance(rule.pattern, CommandPattern)))


class TestFolders:
    @pytest.mark.parametrize("line", ["rm -rf data", "./run", "ls"])
    @pytest.mark.parametrize(("granted", "called"), [("scratch", "."), (".", "scratch")])
    async def test_a_rule_holds_in_the_folder_for_which_it_was_granted(
        self, line: str, granted: str, called: str, tmp_path: Path
    ) -> None:
        uses = (run(line, BAIT, folder=granted), run(line, folder=called))
        async with Trial(tmp_path, *uses, person=allow_exact_command) as trial:
            prepare(trial.work)
            await trial.play()
            trial.assert_held_back()
            assert (trial.work / called / "data").is_dir()

    @pytest.mark.parametrize("folder", ["scratch", "./scratch/", "data/../scratch"])
    async def test_the_same_folder_is_the_same_however_it_is_written(self, folder: str, tmp_path: Path) -> None:
        uses = (run("ls", BAIT, folder="scratch"), run("ls", folder=folder))
        async with Trial(tmp_path, *uses, person=allow_exact_command) as trial:
            prepare(trial.work)
            await trial.play()
            assert trial.asked == [BAIT]
            assert trial.result().outcome is Outcome.SUCCEEDED

    async def test_the_words_say_the_folder(self, tmp_path: Path) -> None:
        uses = (run("ls", BAIT, folder="scratch"), run("ls"))
        async with Trial(tmp_path, *uses) as trial:
            prepare(trial.work)
            await trial.play()
            assert [str(describe_rule(card.proposals[0])) for card in trial.cards] == [
                "commands that begin with “ls”, in the folder scratch of the workspace",
                "commands that begin with “ls”, in the top folder of the workspace",
            ]

    @pytest.mark.parametrize(
        "line",
        ["cd scratch && ls", "pushd scratch; ls", "env -C scratch ls", "bash -c 'cd scratch; ls'", "(cd ..; ls)"],
    )
    async def test_a_line_that_goes_elsewhere_is_asked_about(self, line: str, tmp_path: Path) -> None:
        async with Trial(tmp_path, run(line)) as trial:
            prepare(trial.work)
            patterns = (LS, *(CommandPattern(words=(pattern,)) for pattern in ("cd", "pushd", "env", "bash")))
            trial.rules = tuple(allows("run_command", pattern) for pattern in patterns)
            await trial.play()
            trial.assert_held_back()

    @pytest.mark.parametrize("line", ["cd scratch && ls", "cd -- './scratch/'; ls", "cd scratch\nls 2>&1 | cat"])
    @pytest.mark.parametrize("is_linked", [False, True])
    async def test_a_line_that_goes_to_the_folder_of_a_rule_first_is_not_asked_about(
        self, line: str, is_linked: bool, tmp_path: Path
    ) -> None:
        async with Trial(tmp_path, run(line)) as trial:
            prepare(trial.work)
            if is_linked:
                (trial.work / "scratch").rename(trial.work / "there")
                (trial.work / "scratch").symlink_to("there")
            folder = "there" if is_linked else "scratch"
            trial.rules = tuple(
                allows("run_command", CommandPattern(words=(word,), folder=folder)) for word in ("ls", "cat")
            )
            await trial.play()
            assert trial.asked == []
            assert trial.result().outcome is Outcome.SUCCEEDED

    async def test_the_rule_that_is_offered_is_for_the_folder_that_a_line_goes_to(self, tmp_path: Path) -> None:
        async with Trial(tmp_path, run("cd scratch && ls", BAIT), run("ls", folder="scratch")) as trial:
            prepare(trial.work)
            await trial.play()
            assert str(describe_rule(trial.cards[0].proposals[0])) == (
                "commands that begin with “ls”, in the folder scratch of the workspace"
            )
            assert trial.asked == [BAIT]

    @pytest.mark.parametrize(
        "line",
        [
            "cd ../outside && ls",
            "cd {outside} && ls",
            "cd out && ls",
            "cd missing; ls",
            "cd file; ls",
            "cd scratch/.. && ls",
            "cd - && ls",
            "cd -- - && ls",
            "cd -P scratch && ls",
            "cd $HOME && ls",
            "cd scr* && ls",
            "cd '' && ls",
            "cd && ls",
            "cd scratch data && ls",
            "CDPATH=data cd scratch && ls",
            "command cd scratch && ls",
            "! cd scratch && ls",
            "true && cd scratch && ls",
            "cd scratch & ls",
            "cd scratch && true & ls",
            "cd scratch | ls",
            "cd scratch || ls",
            "(cd scratch && true); ls",
            "cd scratch && cd data && ls",
            "cd scratch && (cd data; ls)",
            "cd scratch && bash -c 'cd data && ls'",
            "bash -c 'cd scratch && ls'",
            "cd 'data\\x' && ls",
            "cd data\\x && ls",
            "cd scratch 2>/dev/null && ls",
        ],
    )
    async def test_where_a_line_goes_is_followed_only_if_it_is_sure(self, line: str, tmp_path: Path) -> None:
        async with Trial(tmp_path, run(line.replace("{outside}", str(tmp_path / "outside")))) as trial:
            prepare(trial.work)
            for folder in (tmp_path / "outside", trial.work / "data\\x"):
                folder.mkdir()
            (trial.work / "out").symlink_to(tmp_path / "outside")
            (trial.work / "file").touch()
            folders = ("scratch", "data", "data/x", "out", "outside", "file", "missing", ".")
            trial.rules = tuple(
                allows("run_command", CommandPattern(words=words, folder=folder))
                for folder in folders
                for words in (("ls",), ("true",), ("bash",), ("command",))
            )
            await trial.play()
            trial.assert_held_back()

    async def test_a_folder_that_became_a_link_since_is_looked_at_again(self, tmp_path: Path) -> None:
        swap = "mv scratch kept && ln -s data scratch"
        uses = (run("cd scratch && ./run", BAIT), run(swap, "swap"), run("cd scratch && ./run"))
        async with Trial(tmp_path, *uses) as trial:
            prepare(trial.work)
            trial.person = lambda card: AllowOnce() if card.tool_use.id == "swap" else allow_exact_command(card)
            await trial.play()
            assert trial.result("swap").outcome is Outcome.SUCCEEDED
            trial.assert_held_back()

    @pytest.mark.parametrize("call", [run("cd scratch && ./run"), run("./run", folder="scratch")])
    async def test_so_it_is_when_another_call_of_the_same_answer_made_it_one(
        self, call: ToolUse, tmp_path: Path
    ) -> None:
        trial = Trial(tmp_path)
        trial.turns = (Turn(run("mv scratch kept && ln -s data scratch", "swap"), call), Turn())
        async with trial:
            prepare(trial.work)
            trial.rules = (allows("run_command", CommandPattern(words=("./run",), folder="scratch")),)
            trial.person = lambda card: AllowOnce() if card.tool_use.id == "swap" else Deny()
            await trial.play()
            assert trial.result("swap").outcome is Outcome.SUCCEEDED
            trial.assert_held_back()

    async def test_a_rule_that_denies_sees_where_a_line_goes_first(self, tmp_path: Path) -> None:
        async with Trial(tmp_path, run("cd scratch && ls")) as trial:
            prepare(trial.work)
            trial.rules = (allows("run_command", CommandPattern(words=("cd",)), RuleEffect.DENY),)
            await trial.play()
            trial.assert_refused()

    async def test_what_find_starts_elsewhere_is_asked_about(self, tmp_path: Path) -> None:
        async with Trial(tmp_path, run("find . -name run -execdir ./run ';'")) as trial:
            prepare(trial.work)
            rules = (CommandPattern(words=("find",)), CommandPattern(words=("./run",)))
            trial.rules = tuple(allows("run_command", pattern) for pattern in rules)
            await trial.play()
            trial.assert_held_back()

    async def test_what_is_read_only_may_read_in_every_folder(self, tmp_path: Path) -> None:
        async with Trial(tmp_path, run("git status", folder="scratch")) as trial:
            prepare(trial.work)
            trial.rules = (allows("run_command", READ_ONLY),)
            await trial.play()
            assert trial.asked == []

    async def test_a_rule_that_denies_does_so_in_every_folder(self, tmp_path: Path) -> None:
        async with Trial(tmp_path, run("ls", folder="scratch")) as trial:
            prepare(trial.work)
            trial.rules = (allows("run_command", LS, RuleEffect.DENY),)
            await trial.play()
            trial.assert_refused()

    def test_an_old_rule_holds_in_the_top_folder(self) -> None:
        stored = '{"type": "command", "words": ["ls"], "exact": false}'
        assert CommandPattern.model_validate_json(stored).folder == "."


class TestNetwork:
    async def test_who_trusts_what_one_command_brought_has_not_trusted_the_next(self, tmp_path: Path) -> None:
        uses = [
            run("true # a", "n1", hosts=["example.org"]),
            run("ls", "l1"),
            run("true # b", "n2", hosts=["example.org"]),
            run("ls"),
        ]

        async with Trial(tmp_path, *uses) as trial:

            def person(approval: Approval) -> Decision:
                if approval.tool_use.id == "l1":
                    trial.session.permission_policy.lift_suspension()
                return Deny() if approval.tool_use.id == ATTACK else AllowOnce()

            trial.person = person
            trial.rules = (allows("run_command", LS),)
            await trial.play()
            trial.assert_held_back()


def read_call(path: str) -> ToolUse:
    return ToolUse(id=ATTACK, name="read_file", input={"path": path})


class TestHome:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "work"))

    @pytest.mark.parametrize("path", [".ssh/id_ed25519", ".aws/credentials", ".bash_history", ".SSH/id_ed25519"])
    async def test_nobody_reads_keys_unasked(self, path: str, tmp_path: Path) -> None:
        async with Trial(tmp_path, read_call(path)) as trial:
            (trial.work / path).parent.mkdir(exist_ok=True)
            (trial.work / path).write_text("PRIVATE")
            await trial.play()
            trial.assert_held_back()

    @pytest.mark.parametrize(
        "path",
        [
            ".bashrc",
            ".ssh/authorized_keys",
            ".gitconfig",
            ".config/git/config",
            ".config/autostart/x.desktop",
            ".config/systemd/user/x.service",
            ".local/bin/ls",
        ],
    )
    async def test_nobody_writes_what_the_person_s_programs_start_unasked(self, path: str, tmp_path: Path) -> None:
        async with Trial(tmp_path, write(path)) as trial:
            trial.edits = True
            await trial.play()
            trial.assert_held_back()
            assert trial.text(path) is None

    async def test_a_wide_rule_for_writing_is_none_for_start_files(self, tmp_path: Path) -> None:
        async with Trial(tmp_path, write(".bashrc")) as trial:
            trial.rules = (allows("write_file"),)
            await trial.play()
            trial.assert_held_back()

    async def test_all_else_in_a_home_folder_is_worked_on_as_ever(self, tmp_path: Path) -> None:
        async with Trial(tmp_path, write("notes/a.txt"), read_call("notes/a.txt")) as trial:
            trial.edits = True
            await trial.play()
            assert trial.asked == []

    async def test_a_link_to_keys_is_followed(self, tmp_path: Path) -> None:
        async with Trial(tmp_path, read_call("plain.txt")) as trial:
            (trial.work / ".ssh").mkdir()
            (trial.work / ".ssh" / "id").write_text("PRIVATE")
            (trial.work / "plain.txt").symlink_to(trial.work / ".ssh" / "id")
            await trial.play()
            trial.assert_held_back()


async def test_the_folder_of_hooks_is_written_only_when_asked(tmp_path: Path) -> None:
    async with Trial(tmp_path, write(".githooks/pre-commit")) as trial:
        (trial.work / ".git").mkdir()
        (trial.work / ".git" / "config").write_text("[core]\n\thooksPath = .githooks\n")
        trial.edits = True
        await trial.play()
        trial.assert_held_back()


async def test_the_same_names_below_a_folder_that_is_no_home_are_ordinary(tmp_path: Path) -> None:
    async with Trial(tmp_path, write(".bashrc"), read_call(".ssh/config")) as trial:
        trial.edits = True
        await trial.play()
        assert trial.asked == []
