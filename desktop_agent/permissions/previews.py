"""What a tool shows of a call, as a person will see it."""

from desktop_agent.permissions.shell.explaining import explain_line
from desktop_agent.tools.answers import plain_text
from desktop_agent.tools.foreign_code import type_name
from desktop_agent.vocabulary.tool_calls import (
    CommandPreview,
    DiffPreview,
    NetworkPreview,
    PicturePreview,
    Preview,
    TextPreview,
)


def copy_preview(made: object) -> Preview | None:
    """Nothing but the words of what a tool shows; of a command line also what is found in it. Raises TypeError."""
    match made:
        case None:
            return None
        case TextPreview():
            return TextPreview(plain_text(made.text))
        case DiffPreview():
            before, after = (None if each is None else plain_text(each) for each in (made.before, made.after))
            return DiffPreview(plain_text(made.path), before, after)
        case CommandPreview():
            parts, understood = explain_line(plain_text(made.line))
            line, folder, confinement = plain_text(made.line), plain_text(made.folder), plain_text(made.confinement)
            hosts = tuple(plain_text(each) for each in made.hosts)
            return CommandPreview(line, folder, confinement, parts, understood, hosts, made.only_hosts is True)
        case NetworkPreview():
            return NetworkPreview(
                plain_text(made.method), plain_text(made.url), plain_text(made.host), plain_text(made.note)
            )
        case PicturePreview() if type(made.data) is bytes:
            return PicturePreview(plain_text(made.name), made.data, plain_text(made.note))
        case _:
            return TextPreview(f"What it would do cannot be shown ({type_name(made)}).")
