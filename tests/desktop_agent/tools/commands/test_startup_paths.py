from pathlib import Path

import pytest

from desktop_agent.permissions.hard_denies import HardAsk, ProtectedPaths, find_hard_verdict, startup_files_to_ask_about
from desktop_agent.permissions.rule_matching import CallFacts
from desktop_agent.processes.worker_threads import CancelToken, Stopped
from desktop_agent.sandbox.startup_files import StartupFile, find_startup_file
from desktop_agent.tools.commands import workspace_survey as looking
from desktop_agent.tools.commands.workspace_survey import startup_paths
from desktop_agent.types.permissions import PathSubject
from desktop_agent.types.tool_calls import Effect
from tests.desktop_agent.permissions.conftest import open_tool


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "me").mkdir()
    return tmp_path / "me"


def programs_by_path(workspace: Path | None, *paths: Path) -> dict[str, str]:
    places = startup_paths(map(str, paths), None if workspace is None else str(workspace))
    return {path: entry.program for path, entry in places}


@pytest.mark.parametrize("above", [0, 1])
def test_start_files_of_a_home_folder(above: int, home: Path) -> None:
    places = programs_by_path([home, home.parent][above])
    assert places[(home / ".bashrc").as_posix()] == "your shell"
    assert places[(home / ".config" / "git").as_posix()] == "Git"


def test_a_folder_in_a_home_folder_has_none(home: Path) -> None:
    (home / "project").mkdir()
    assert programs_by_path(home / "project") == {}
    assert programs_by_path(None) == {}


def test_what_was_moved_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "settings"))
    assert (home / "settings" / "autostart").as_posix() in programs_by_path(home)


def repository(folder: Path, settings: str = "", git: str = ".git") -> Path:
    """Create the smallest folder that git takes for a repository."""
    for name in ("objects", "refs"):
        (folder / git / name).mkdir(parents=True)
    (folder / git / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / git / "config").write_text(settings or "[core]\n\tbare = false\n")
    return folder


HOOKS = "[core]\n\thooksPath = tools/checks\n"


@pytest.mark.parametrize("of_person", [True, False])
def test_the_folder_of_hooks_is_found_when_it_is_set(of_person: bool, home: Path) -> None:
    project = repository(home / "project")
    settings = home / ".gitconfig" if of_person else project / ".git" / "config"
    assert programs_by_path(project) == {}
    settings.write_text(HOOKS)
    for folder in (project, project / "tools"):
        assert programs_by_path(folder) == {(project / "tools" / "checks").as_posix(): "Git"}


@pytest.mark.parametrize("includes", [".git/config", "sub/.git/config", "../.gitconfig", ".git/config.worktree"])
def test_settings_that_others_include(includes: str, home: Path) -> None:
    work = repository(home / "work")
    repository(work / "sub")
    (work / includes).write_text(f"[include]\n\tpath = {work}/first\n")
    assert programs_by_path(work) == {f"{work}/first": "Git"}
    (work / "first").write_text('[includeIf "onbranch:x"]\n\tpath = conf/last.gitconfig\n')
    assert programs_by_path(work) == {f"{work}/first": "Git", f"{work}/conf/last.gitconfig": "Git"}


def test_hooks_of_repositories_in_the_workspace(home: Path) -> None:
    work = repository(home / "work")
    repository(work / "sub", HOOKS)
    repository(work / "a" / "b", "[core]\n\thooksPath = ../../own\n")
    repository(work, HOOKS, "store.git")
    (work / ".git" / "config.worktree").write_text("[core]\n\thooksPath = top\n")
    places = {path for path in programs_by_path(work) if "store.git" not in path}
    assert places == {f"{work}/{path}" for path in ("sub/tools/checks", "own", "tools/checks", "top")}


@pytest.mark.parametrize("name", ["a-tree", "tree"])
def test_hooks_of_a_further_working_tree(name: str, home: Path) -> None:
    main, tree = repository(home / "main", HOOKS), home / name
    admin_folder = main / ".git" / "worktrees" / "tree"
    admin_folder.mkdir(parents=True)
    tree.mkdir()
    (admin_folder / "HEAD").write_text("ref: refs/heads/other\n")
    (admin_folder / "commondir").write_text("../..\n")
    (admin_folder / "gitdir").write_text(f"{tree}/.git\n")
    (tree / ".git").write_text(f"gitdir: {admin_folder}\n")
    assert programs_by_path(tree) == {f"{tree}/tools/checks": "Git"}
    assert programs_by_path(home).keys() >= {f"{tree}/tools/checks", f"{main}/tools/checks"}


@pytest.mark.parametrize("folder", ["main", "work", "work/sub"])
def test_what_a_hook_leads_to(folder: str, home: Path) -> None:
    work = repository(home / "work")
    hooks = repository(home / folder, "[a]\n") if folder != "work" else work
    if folder == "main":
        (work / ".git" / "config").write_text(f"[core]\n\thooksPath = {home}/main/.git/hooks\n")
    (hooks / ".git" / "hooks").mkdir()
    (hooks / ".git" / "hooks" / "pre-commit").symlink_to(work / "scripts" / "check")
    assert programs_by_path(work) == {f"{work}/scripts/check": "Git"}


def test_a_folder_of_hooks_that_is_a_link(home: Path) -> None:
    work = repository(home / "work")
    (work / ".git" / "hooks").symlink_to("../checks")
    assert programs_by_path(work) == {f"{work}/checks": "Git"}


PROGRAMS = {
    "[core]\n\tfsmonitor = tools/run": "tools/run",
    "[core]\n\tsshCommand = ssh -F tools/none -o ProxyCommand=tools/run": "tools/run",
    "[core]\n\teditor = ./run": "run",
    '[filter "x"]\n\tclean = python3 tools/run %f': "tools/run",
    '[diff "x"]\n\ttextconv = bash there.sh': "there.sh",
    '[alias]\n\tst = "!f() { tools/run; }; f"': "tools/run",
}


@pytest.mark.parametrize("settings", PROGRAMS)
def test_programs_that_settings_name(settings: str, home: Path) -> None:
    work = repository(home / "work", f"{settings}\n")
    (work / "there.sh").touch()
    assert programs_by_path(work)[f"{work}/{PROGRAMS[settings]}"] == "Git"


def test_settings_that_name_no_program(home: Path) -> None:
    settings = (
        "[commit]\n\ttemplate = a/b\n[core]\n\texcludesFile = a/b\n[blame]\n\tignoreRevsFile = .a\n"
        '[remote "x"]\n\turl = ../a/b\n[branch "x"]\n\tmerge = refs/heads/a\n[user]\n\tname = .a\n'
        "[alias]\n\tst = status -s\n[pull]\n\trebase = true\n[init]\n\tdefaultBranch = .a\n"
    )
    work = repository(home / "work", settings)
    (work / ".a").touch()
    assert programs_by_path(work) == {}


def test_a_repository_deeper_than_is_looked_is_found_from_what_is_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "_MAX_FOLDERS", 1)
    deep = repository(home / "work" / "a" / "deep", HOOKS)
    assert programs_by_path(home / "work") == {}
    assert programs_by_path(home / "work", deep / "tools" / "checks" / "x") == {f"{deep}/tools/checks": "Git"}


LINKS = {
    # link: (where it leads, a path that is written, what runs it)
    ".vscode": ("editor", "editor/tasks.json", "VS Code"),
    ".envrc": ("setup.txt", "setup.txt", "direnv"),
    ".git/hooks/pre-commit": ("../../check.py", "check.py", "Git"),
    "sub/.vscode": ("../x", "x/tasks.json", "VS Code"),
    "sub/deep/.envrc": ("../../x/y", "x/y", "direnv"),
    "sub/.husky/pre-push": ("../../check.py", "check.py", "Husky"),
    "sub/hooks": ("../scripts", "scripts/pre-commit", "Git"),
    ".VSCode": (".", "tasks.json", "VS Code"),
    "Makefile": ("build/rules", "build/rules", "make"),
    "sub/package.json": ("../shared.json", "shared.json", "npm"),
    "sub/own.mk": ("../rules", "rules", "make"),
}


@pytest.mark.parametrize("link", LINKS)
def test_where_links_lead_to(link: str, home: Path) -> None:
    work = home / "work"
    target, path, program = LINKS[link]
    (work / link).parent.mkdir(parents=True)
    (work / link).symlink_to(target)
    assert programs_by_path(work, work / path, work / "README") == {str(work / path): program}


def test_links_to_folders_with_links(home: Path) -> None:
    work = home / "work"
    for link, target in (
        ("sub/.vscode", "../first"),
        ("first", "conf"),
        ("conf/tasks.json", "../last.json"),
        ("a", "."),
    ):
        (work / link).parent.mkdir(parents=True, exist_ok=True)
        (work / link).symlink_to(target)
    assert programs_by_path(work, work / "last.json", work / "first.json") == {str(work / "last.json"): "VS Code"}


def packages(work: Path, many: int) -> None:
    """Create packages that link to the top of the workspace: a file has a name for each way through these links."""
    for number in range(many):
        (work / "packages" / f"p{number}").mkdir(parents=True)
        (work / "packages" / f"p{number}" / "root").symlink_to("../..")


def test_of_names_that_only_go_round_few_are_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = list[str]()

    def find_and_note(name: str, *, workspace_parts: int) -> StartupFile | None:
        names.append(name)
        return find_startup_file(name, workspace_parts=workspace_parts)

    monkeypatch.setattr(looking, "find_startup_file", find_and_note)
    packages(home / "work", 16)
    assert programs_by_path(home / "work", home / "work" / "src" / "a.py") == {}
    assert len(names) < 16 * 8


def test_a_name_may_go_round_before_it_matches(home: Path) -> None:
    work = home / "work"
    packages(work, 2)
    (work / "packages" / "p1" / ".github").symlink_to("../..")
    (work / "workflows").mkdir()
    (work / "workflows" / "own").symlink_to("../src")
    assert programs_by_path(work, work / "src" / "ci.yml") == {str(work / "src" / "ci.yml"): "GitHub"}


def test_every_part_of_a_pattern_may_be_a_link(home: Path) -> None:
    work = home / "work"
    for link, target in (("a/.github", "../b"), ("b/workflows", "../c"), ("c/in", "../d"), ("d/last", "../e")):
        (work / link).parent.mkdir(parents=True)
        (work / link).symlink_to(target)
    assert programs_by_path(work, work / "e" / "ci.yml") == {str(work / "e" / "ci.yml"): "GitHub"}


def test_a_file_with_more_names_than_are_looked_at_is_asked_about(home: Path) -> None:
    work = home / "work"
    (work / "src").mkdir(parents=True)
    for number in range(150):
        (work / f"same{number}").symlink_to("src")
        (work / "src" / f"up{number}").symlink_to("..")
    path = f"{work}/src/a.py"
    case = CallFacts(open_tool([Effect.WRITE]), "d", (PathSubject(path),))
    hard = find_hard_verdict(case, ProtectedPaths(workspace=str(work), startup=startup_paths([path], str(work))))
    assert isinstance(hard, HardAsk)
    reason = "“src/a.py” may be what another program runs: links in the workspace give it too many names to look at."
    assert [str(reason_given) for reason_given in hard.reasons] == [reason]


def test_a_stop_ends_it_at_the_next_link(home: Path) -> None:
    packages(home / "work", 3)
    sign, checks = CancelToken(), list[bool]()

    def check() -> None:
        checks.append(sign.is_cancelled)
        sign.raise_if_cancelled()
        if len(checks) == 2:
            sign.cancel()

    with pytest.raises(Stopped):
        startup_paths([f"{home}/work/a.py"], f"{home}/work", check)
    assert checks == [False, False, True]


def test_a_link_to_what_is_asked_about_anyway_hides_nothing(home: Path) -> None:
    work = home / "work"
    work.mkdir()
    (work / "Makefile").symlink_to(".envrc")
    case = CallFacts(open_tool([Effect.WRITE]), "d", (PathSubject(f"{work}/.envrc"),))
    protected = ProtectedPaths(workspace=str(work), startup=startup_paths([f"{work}/.envrc"], str(work)))
    assert [file.program for file in startup_files_to_ask_about(case, protected).values()] == ["direnv"]


def test_links_among_packages_lead_to_ordinary_work(home: Path) -> None:
    (home / "work" / "node_modules").mkdir(parents=True)
    (home / "work" / "packages" / "own").mkdir(parents=True)
    (home / "work" / "node_modules" / "own").symlink_to("../packages/own")
    assert programs_by_path(home / "work", home / "work" / "packages" / "own" / "a.js") == {}


PARTS = ["HEAD", "config", "objects/ab/cd", "refs/heads/main", "hooks/anything", "packed-refs", "info/attributes"]


@pytest.mark.parametrize("path", PARTS)
@pytest.mark.parametrize("folder", ["", "vendor/lib.git"])
def test_parts_of_a_repository_without_a_working_tree(folder: str, path: str, home: Path) -> None:
    top = home / folder
    for name in ("objects", "refs"):
        (top / name).mkdir(parents=True)
    (top / "HEAD").write_text("ref: refs/heads/main\n")
    assert programs_by_path(home, top / path)[str(top / path)] == "Git"
    assert str(top / "README") not in programs_by_path(home, top / "README")


def test_what_makes_a_repository_of_a_folder(home: Path) -> None:
    (home / "objects").mkdir()
    assert str(home / "config") not in programs_by_path(home, home / "config")
    assert str(home / "HEAD") in programs_by_path(home, home / "HEAD")
    (home / "objects").rmdir()
    assert str(home / "HEAD") not in programs_by_path(home, home / "HEAD")
    (home / "HEAD").write_text("ref: refs/heads/main\n")
    for last in ("objects/a", "commondir"):
        assert str(home / last) in programs_by_path(home, home / last)
