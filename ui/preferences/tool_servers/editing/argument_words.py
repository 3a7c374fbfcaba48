"""Arguments as a person writes them: one a line, or a whole line of a shell."""

import json
import re
import shlex

from desktop_agent.vocabulary.mcp.secret_looks import KNOWN_KEY_PREFIXES, find_option_with_secret

# Long runs of letters and digits together, and the beginnings of well-known keys.
_SECRET_KEY = re.compile(rf"(?:{KNOWN_KEY_PREFIXES})[\w.-]{{8,}}|[A-Za-z0-9+_-]{{28,}}={{0,2}}")


def format_arguments(arguments: tuple[str, ...]) -> str:
    """One a line; one that would not be itself in a line of its own is written as JSON."""
    return "\n".join(json.dumps(each, ensure_ascii=False) if _needs_quotes(each) else each for each in arguments)


def parse_arguments(text: str) -> tuple[str, ...]:
    """What `format_arguments` wrote, or a person: a line in quotation marks is what stands between them."""
    lines = (each.strip() for each in text.split("\n"))
    return tuple(_unquote(each) for each in lines if each)


def split_command_line(line: str) -> tuple[str, ...]:
    """The words of a shell line; nothing where a quotation mark is left open."""
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()


def find_secret(arguments: tuple[str, ...]) -> str | None:
    """The first argument that is probably a secret; it may be none."""
    option = find_option_with_secret(arguments)
    if option is not None:
        return option
    for each in arguments:
        meant = each.partition("=")[2] or each
        if _SECRET_KEY.fullmatch(meant) and re.search(r"\d", meant) and re.search(r"[A-Za-z]", meant):
            return meant[:6] + "…"
    return None


def _needs_quotes(argument: str) -> bool:
    return argument != argument.strip() or not argument or argument.startswith('"') or not argument.isprintable()


def _unquote(line: str) -> str:
    if len(line) < 2 or not line.startswith('"') or not line.endswith('"'):
        return line
    try:
        return str(json.loads(line))
    except ValueError:
        return line[1:-1]
