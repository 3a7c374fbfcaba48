"""What a tool shows of a call, as a person will see it."""

from desktop_agent.permissions.shell.explaining import explained
from desktop_agent.tools.answers import plain
from desktop_agent.tools.foreign_code import kind_of
from desktop_agent.vocabulary.tool_calls import (
    CommandPreview,
    DiffPreview,
    NetworkPreview,
    PicturePreview,
    Preview,
    TextPreview,
)


def shown(made: object) -> Preview | None:
    """Nothing but the words of what a tool shows; of a command line also what is found in it. Raises TypeError."""
    match made:
        case None:
            return None
        case TextPreview():
            return TextPreview(plain(made.text))
        case DiffPreview():
            before, after = (None if each is None else plain(each) for each in (made.before, made.after))
            return DiffPreview(plain(made.path), before, after)
        case CommandPreview():
            parts, understood = explained(plain(made.line))
            line, folder, confinement = plain(made.line), plain(made.folder), plain(made.confinement)
            hosts = tuple(plain(each) for each in made.hosts)
            return CommandPreview(line, folder, confinement, parts, understood, hosts, made.only_hosts is True)
        case NetworkPreview():
            return NetworkPreview(plain(made.method), plain(made.url), plain(made.host), plain(made.note))
        case PicturePreview() if type(made.data) is bytes:
            return PicturePreview(plain(made.name), made.data, plain(made.note))
        case _:
            return TextPreview(f"What it would do cannot be shown ({kind_of(made)}).")
