"""Lists in sentences, with the quotation marks and commas of the reader's language."""

from collections.abc import Sequence

from desktop_agent.types.errors import Sentence


def quoted_names(names: Sequence[str], *more: str) -> Sentence:
    """Return a list of at least one name in quotation marks, followed by `more` without them."""
    listed, *others = [Sentence("“{name}”", {"name": name}) for name in names]
    for following in (*others, *more):
        listed = Sentence("{first}, {next}", {"first": listed, "next": following})
    return listed
