"""Commands that belong together: one rule may name all of them, and shows each.

None of them reaches further than a rule for it alone would let it: see reaching_options.
"""

from collections.abc import Iterable

from desktop_agent.vocabulary.conduct.rules import CommandsPattern

Beginning = tuple[str, ...]


def _bundle(title: str, *commands: str) -> CommandsPattern:
    return CommandsPattern(title=title, beginnings=tuple(tuple(each.split()) for each in commands))


# A hook runs where the commit runs: in the bounds of a command of the agent.
BUNDLES = (
    _bundle("git, only looking", "git status", "git diff", "git log", "git show", "git blame", "git ls-files"),
    _bundle("git, recording (a commit starts the hooks of the repository)", "git add", "git commit"),
    _bundle("ruff, checking and formatting", "ruff check", "ruff format"),
)


def bundle_of(beginnings: Iterable[Beginning]) -> CommandsPattern | None:
    """The one that has all of these, as it is now; None where there is none."""
    wanted = set(beginnings)
    return next((each for each in BUNDLES if wanted and wanted <= set(each.beginnings)), None)
