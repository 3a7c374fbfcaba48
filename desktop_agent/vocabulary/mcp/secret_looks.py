"""What gives a secret away: how well-known keys begin, and how options are called that take one."""

import re
from collections.abc import Sequence

KNOWN_KEY_PREFIXES = r"sk-|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ|hf_"
"""Part of a regular expression."""

_SECRET_OPTION = re.compile(r"--?[\w-]*(?:key|token|secret|password|passwd|auth(?!or))[\w-]*", re.IGNORECASE)


def find_option_with_secret(arguments: Sequence[str]) -> str | None:
    """The first option of a program that is given a secret in clear; a variable of a shell is none."""
    before = ""
    for each in arguments:
        option, _, value = each.partition("=")
        if _SECRET_OPTION.fullmatch(option) and value and not value.startswith("$"):
            return option
        if _SECRET_OPTION.fullmatch(before) and each and not each.startswith(("-", "$")):
            return before
        before = each
    return None
