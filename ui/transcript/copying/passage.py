"""A piece of what is copied."""

from dataclasses import dataclass

from ui.transcript.markdown.leaves import Container


@dataclass(frozen=True, slots=True)
class CopiedBlock:
    """A block, or a part of one, written in one form, and where it stood: as in a Leaf."""

    text: str
    containers: tuple[Container, ...] = ()
    tight: bool = False
    starts: bool = True
    separator: str | None = None


def shared_depth(passage: CopiedBlock, around: list[str]) -> int:
    """How many of the containers around the passage before, by their kinds, go on around this one."""
    if passage.starts:
        return 0
    depth = 0
    for each, kind in zip(passage.containers, around, strict=False):
        if each.kind != kind or each.marker:
            break
        depth += 1
    return depth


@dataclass(frozen=True, slots=True)
class CopyExtract:
    """What is copied of a block, in all forms; `before` stands between it and the one before in the plain text."""

    before: str
    text: str
    markdown: CopiedBlock
    html: CopiedBlock


EMPTY_EXTRACT = CopyExtract("", "", CopiedBlock(""), CopiedBlock(""))
"""Time went by, and nothing was copied in it. It is known by being this very one."""

CopyStep = CopyExtract | str | int
"""Of copying: something copied, whose message begins, or how many messages are done."""
