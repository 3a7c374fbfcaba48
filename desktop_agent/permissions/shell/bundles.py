"""Commands that belong together: one rule may name all of them, and shows each.

None of them reaches further than a rule for it alone would let it: see reaching_options. What is read-only may do so in
every folder of the workspace.
"""

from collections.abc import Iterable

from desktop_agent.vocabulary.conduct.rules import WORKSPACE_ROOT, CommandsPattern

Beginning = tuple[str, ...]


def _bundle(title: str, *commands: str, folder: str | None = WORKSPACE_ROOT) -> CommandsPattern:
    return CommandsPattern(title=title, beginnings=tuple(tuple(each.split()) for each in commands), folder=folder)


_READ_ONLY = ("git status", "git diff", "git log", "git show", "git blame", "git ls-files")
# A hook runs where the commit runs: in the bounds of a command of the agent.
BUNDLES = (
    _bundle("git, only looking", *_READ_ONLY, folder=None),
    _bundle("git, recording (a commit starts the hooks of the repository)", "git add", "git commit"),
    _bundle("ruff, checking and formatting", "ruff check", "ruff format"),
)


def find_bundle(beginnings: Iterable[Beginning], folder: str = WORKSPACE_ROOT) -> CommandsPattern | None:
    """The one that has all of these, as it is now, for this folder; None where there is none."""
    wanted = set(beginnings)
    found = next((each for each in BUNDLES if wanted and wanted <= set(each.beginnings)), None)
    return found if found is None or found.folder is None else found.model_copy(update={"folder": folder})
