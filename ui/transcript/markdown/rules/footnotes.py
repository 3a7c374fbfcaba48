"""Footnotes: `[^label]: text` defines one, `[^label]` refers to one that is defined, now or later.

They are shown where they stand, under the label that they have: the library's list at the end is not used.
"""

import re

from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.footnote.index import footnote_def

FOOTNOTES_KEY = "footnotes"
"""Where the labels are kept among the definitions of links, whose own labels are written in capitals."""

MAX_LABEL_LENGTH = 1003
"""Characters from the bracket of a definition to its colon."""

_FOOTNOTE_DEFINITION = re.compile(r"\[\^[^\] ]{1,999}\]:")
_FOOTNOTE_REFERENCE = re.compile(r"\[\^([^\]\s]{1,999})\]")


def footnote_definition(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """The library's rule. A label is as long as a link's at most."""
    start = state.bMarks[startLine] + state.tShift[startLine]
    if not _FOOTNOTE_DEFINITION.match(state.src, start, state.eMarks[startLine]):
        return False
    return footnote_def(state, startLine, endLine, silent)


def footnote_reference(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    """A token `footnote_ref` with its label in `meta`."""
    found = _FOOTNOTE_REFERENCE.match(state.src, state.pos) if state.src[state.pos] == "[" else None
    if not found or found[1] not in state.env.get("references", {}).get(FOOTNOTES_KEY, ()):
        return False
    if not silent:
        state.push("footnote_ref", "", 0).meta = {"label": found[1]}
    state.pos = found.end()
    return True
