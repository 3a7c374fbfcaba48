import pytest

from desktop_agent.sandbox.startup_files import (
    AskLevel,
    StartupFile,
    find_startup_file,
    home_startup_files,
    may_contain_startup_files,
    startup_file_table,
    startup_files_in_line,
)


def examples(entry: StartupFile) -> list[str]:
    """A file for each pattern of an entry."""
    return [f"{each}any/file" if each.endswith("/") else each.replace("*", "any") for each in entry.patterns]


ANYWHERE = [entry for entry in startup_file_table() if entry.level is not AskLevel.HOME]


def test_every_pattern_is_found_in_any_folder_and_spelling() -> None:
    for entry in ANYWHERE:
        for path in examples(entry):
            in_folder, unseen = f"/home/me/project/a/{path}", f"{path[:1]}\u200b{path[1:]}"
            for spelled in (path, in_folder, path.upper(), f"{path}. ", unseen):
                assert find_startup_file(spelled) is entry, spelled


def test_no_pattern_stands_twice() -> None:
    patterns = [each.casefold() for entry in ANYWHERE for each in entry.patterns]
    assert sorted(set(patterns)) == sorted(patterns)


def test_every_sentence_says_which_file_which_program_and_when() -> None:
    for entry in startup_file_table():
        said = str(entry.sentence("a/file"))
        assert said == f"The content of “a/file” is run by {entry.program} {entry.when}, without any confinement."
        assert entry.when.split()[0] in {"when", "at"}, entry


def test_a_program_is_called_by_its_name() -> None:
    # “The tool of that name” tells nobody what runs `.moon/`.
    kinds = ("tool", "service", "program of that name", "task runner", "package manager")
    assert [entry for entry in startup_file_table() for each in kinds if f"the {each}" in entry.program] == []


PROGRAMS = {
    "Pulumi.yaml": "Pulumi",
    "cdk.json": "AWS CDK",
    "wrangler.toml": "Wrangler",
    "magefile.go": "Mage",
    "Snakefile": "Snakemake",
    ".moon/tasks.yml": "moon",
    "dvc.yaml": "DVC",
    ".upsun/config.yaml": "Upsun",
    ".platform.app.yaml": "Upsun",
    "tasks.py": "Invoke",
    "shard.yml": "Shards",
    ".eslintrc.json": "ESLint",
    "phpstan.neon": "PHPStan",
    "eslint.config.js": "ESLint",
    "vite.config.ts": "Vite",
    ".bsp/sbt.json": "Metals",
    "captainhook.json": "CaptainHook",
    "renv/activate.R": "R",
    ".releaserc.cjs": "semantic-release",
    ".xcode.env": "Xcode",
}


@pytest.mark.parametrize("path", PROGRAMS)
def test_which_program_runs_it(path: str) -> None:
    entry = find_startup_file(f"a/{path}")
    assert entry is not None
    assert PROGRAMS[path] in entry.program


ALWAYS = """
    prek.toml .config/hk.pkl .pnp.cjs .pnp.loader.mjs .bundle/config action.yml Properties/launchSettings.json
    omnisharp.json .ropeproject/config.py .nova/Tasks/build.json .theia/tasks.json devfile.yaml hooks/hooks.json
    .claude-plugin/plugin.json .factory/mcp.json .trae/mcp.json .junie/mcp/mcp.json .augment/settings.json
    .amp/settings.json .kilocode/mcp.json .vibe/config.toml .clinerules/hooks/PreToolUse .github/hooks/all.json .replit
    .idx/dev.nix .vim/coc-settings.json .tekton/push.yaml bitrise.yml .vscode/c_cpp_properties.json .bsp/scala-cli.json
    .lsp/config.edn captainhook.json renv/activate.R grumphp.yml grumphp.yml.dist .trunk/trunk.yaml
"""
AFTER_OUTSIDE = """
    nodemon.json .air.toml build.mill build.sc manage.py bin/rails artisan alembic/env.py gunicorn.conf.py docs/conf.py
    mkdocs.yml book.toml src-tauri/tauri.conf.json cdk.json lakefile.lean dvc.yaml uv.toml conanfile.py .releaserc
    .releaserc.js .graphqlrc.js vitest.workspace.ts config/boot.rb wp-cli.yml wp-cli.local.yml Thorfile lib/tasks/a.thor
    ios/.xcode.env .xcode.env.local
"""


@pytest.mark.parametrize(("paths", "level"), [(ALWAYS, AskLevel.ALWAYS), (AFTER_OUTSIDE, AskLevel.AFTER_OUTSIDE)])
def test_how_often_is_asked(paths: str, level: AskLevel) -> None:
    for path in paths.split():
        entry = find_startup_file(f"a/{path}")
        assert (path, entry and entry.level) == (path, level)


ORDINARY = """
    conf.py src/app/env.py migrations/0001_initial.py .clinerules/style.md src/properties.json actions.yml bin/tool
    README.md src/main.py src/hooks/useThing.ts src/hooks/index.ts docs/git.md gitconfig vscode/tasks.json tasks.json
    .vscode/extensions.json .vscode/keybindings.md .gitignore .gitattributes .gitmodules .nvmrc workflows/ci.yml
    .github/dependabot.yml .github/ISSUE_TEMPLATE/bug.md hooks/pre-commit.md envrc claude/settings.json script.sh
    .bashrc .ssh/config app.service LICENSE src/config.js src/vite.ts
"""


@pytest.mark.parametrize("path", ORDINARY.split())
def test_an_ordinary_file_is_none(path: str) -> None:
    assert find_startup_file(path) is None


def test_a_workspace_inside_of_such_a_folder_is_worked_in() -> None:
    inside = "/home/me/.claude/worktrees/fix"
    assert find_startup_file(f"{inside}/main.py", workspace_parts=5) is None
    assert find_startup_file(f"{inside}/.envrc", workspace_parts=5) is not None
    # But the workspace may be half of what a program looks for.
    assert find_startup_file("/home/me/.vscode/tasks.json", workspace_parts=3) is not None
    assert find_startup_file("/home/me/.husky/pre-commit", workspace_parts=3) is not None


def test_always_goes_before_the_next_build() -> None:
    entry = find_startup_file("node_modules/package/package.json")
    assert entry is not None
    assert entry.level is AskLevel.ALWAYS


def test_names_that_are_looked_for_are_quick_to_tell() -> None:
    always = [each for entry in ANYWHERE if entry.level is AskLevel.ALWAYS for each in entry.patterns]
    for name in [each.rstrip("/").rpartition("/")[2].replace("*", "any") for each in always]:
        assert may_contain_startup_files({"README.md", name, "module.py"}), name
    assert not may_contain_startup_files({"README.md", "module.py", "abazel.md", "pth", "any.pth.txt"})


LINES = {
    "echo x > .envrc": [".envrc"],
    "cp a .vscode/tasks.json && mv b ./.npmrc": [".vscode/tasks.json", ".npmrc"],
    "tee '.husky/pre-commit' <a": [".husky/pre-commit"],
    "f=.envrc; sed -i s/a/b/ .github/workflows/": [".envrc", ".github/workflows"],
    "python -c \"open('.envrc', 'w')\"": [".envrc"],
    "cp tasks.json .vscode/": [".vscode"],
    "mv ci.yml .github": [".github"],
    "mv tasks.json src/hooks": [],
    "make all": [],
}


@pytest.mark.parametrize("line", LINES)
def test_what_a_line_names(line: str) -> None:
    assert list(startup_files_in_line(line)) == LINES[line]


def test_what_a_line_names_is_said_from_the_workspace() -> None:
    assert list(startup_files_in_line("cp a tasks.json", ".vscode")) == [".vscode/tasks.json"]
    assert list(startup_files_in_line("cp a ../.envrc", "src")) == [".envrc"]
    assert startup_files_in_line("mv conf .vscode")[".vscode"].program == "VS Code"


def test_a_home_folder_has_names_of_its_own() -> None:
    assert home_startup_files()[".bashrc"].level is AskLevel.HOME
    assert find_startup_file("/home/me/.bashrc") is None
