"""A line that goes to a folder before all else: `cd src && pytest` is a pytest in src."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

# Without options, expansions and ways back: `cd ..` is another folder where a link was followed, `cd -` is anywhere.
_GOES_FIRST = re.compile(
    r"""[ \t\n]*cd[ \t]+(?:--[ \t]+)?
        (?:(?P<bare>(?!-)[\w./@+,-]+)|(?P<quote>["'])(?P<quoted>(?!-)[\w./@+, -]+)(?P=quote))
        [ \t]*(?:&&|;(?!;)|\n)""",
    re.VERBOSE,
)


def first_folder(line: str, root: "Node") -> str | None:
    """The folder, as written, in which all the rest of the line runs; None where that cannot be told.

    Where going there fails, what stands behind `;` runs where the line began: see that the folder is there.
    """
    found = _GOES_FIRST.match(line)
    if found is None or _has_background(root):
        return None
    path = found["bare"] or found["quoted"]
    return None if ".." in path.split("/") else path


def _has_background(root: "Node") -> bool:
    """Whether a part of it runs in a shell of its own: in `cd a && b & c` the last one stays behind."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "&":
            return True
        waiting += node.children
    return False
